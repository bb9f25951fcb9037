// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// What the scripts of the timeline have in common: the range, requests, texts and colors. heatmap.js and lanes.js draw
// its views. The server sends only what the shown range and the width of the window need; a change of the range is another
// request. Times in nanoseconds since the epoch are BigInt, and times within the range are numbers of nanoseconds since
// its start.
'use strict';
(() => {

const main = document.getElementById('timeline');
if (!main || !main.dataset.from) return;
const byID = id => document.getElementById(id);
let selection = new URLSearchParams(location.search);
const firstCells = selection.get('cells');
const range = { from: BigInt(main.dataset.from), to: BigInt(main.dataset.to) };
const length = () => Number(range.to - range.from);

// ---- Times and texts

const two = n => String(n).padStart(2, '0');

// iso writes a time for the server, to the nanosecond.
function iso(time) {
	return new Date(Number(time / 1000000n)).toISOString().replace('Z', String(time % 1000000n).padStart(6, '0') + 'Z');
}

// clock writes a time in the zone of the browser, with the digits that a step needs.
function clock(time, step) {
	const t = new Date(Number(time / 1000000n)), digits = step >= 1e9 ? 0 : Math.min(9, Math.ceil(-Math.log10(step / 1e9)));
	const fraction = String(time % 1000000000n).padStart(9, '0').slice(0, digits);
	return `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}${digits ? '.' + fraction : ''}`;
}

// duration writes nanoseconds with three digits.
function duration(ns) {
	for (const [size, name] of [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs']]) {
		if (ns >= size) return `${Number((ns / size).toPrecision(3))} ${name}`;
	}
	return `${ns} ns`;
}

// shown makes characters visible that are not, or that change the direction of text.
function shown(text) {
	return text.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, c => c < ' ' ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : '\ufffd');
}

const counted = (n, noun) => `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;

// niceStep is the least of 1, 2 or 5 times a power of ten, or of the steps of a clock, that is not less than ns.
function niceStep(ns) {
	for (const step of [60e9, 120e9, 300e9, 600e9, 1800e9, 3600e9, 7200e9, 21600e9, 86400e9]) if (ns > 30e9 && ns <= step) return step;
	const power = 10 ** Math.floor(Math.log10(Math.max(1, ns)));
	return [1, 2, 5, 10].map(n => n * power).find(step => step >= ns);
}

// ---- Requests

const running = {};

// load asks the server, and returns null if a later request of the same name has taken its place.
async function load(name, path, parameters) {
	if (running[name]) running[name].abort();
	const own = running[name] = new AbortController(), query = new URLSearchParams(selection);
	for (const key of ['from', 'to', 'cells', 'compare']) query.delete(key);
	for (const [key, value] of Object.entries(parameters)) query.set(key, value);
	try {
		const response = await fetch(`${path}?${query}`, { signal: own.signal });
		if (!response.ok) throw new Error(await response.text());
		return await response.json();
	} catch (error) {
		if (own.signal.aborted) return null;
		throw error;
	}
}

const times = (from, to) => ({ from: iso(from), to: iso(to) });

// addressOf is the address of this page with other parameters; null removes one.
function addressOf(changes) {
	const query = new URLSearchParams(selection);
	for (const [key, value] of Object.entries(changes)) {
		if (value === null) query.delete(key);
		else query.set(key, value);
	}
	return `${location.pathname}?${query}`;
}

// ---- Drawing

const colors = {};
const states = ['running', 'runnable', 'syscall', 'blocked', 'lock', 'wait', 'channel', 'select', 'network', 'file', 'sleep', 'idle', 'gc', 'forever', 'wall', 'other'];

function readColors() {
	const style = getComputedStyle(main);
	for (const name of ['bg', 'fg', 'muted', 'line', 'soft', 'link', 'shade', 'heat', ...states.map(s => 'state-' + s)]) {
		colors[name] = style.getPropertyValue('--' + name).trim();
	}
}

// colorOf is the color of a state: of a blocked one, that of its reason.
function colorOf(state) {
	const reason = state.state === 'running' && state.reason === 'gc' || state.state === 'blocked' ? state.reason : '';
	return colors['state-' + reason] || colors['state-' + state.state.split(' ')[0]] || colors['state-other'];
}

const nameOf = state => state.reason ? `${state.state}: ${state.reason}` : state.state;

function rgb(color) {
	const digits = color.slice(1), wide = digits.length === 3 ? digits.replace(/./g, '$&$&') : digits;
	return [0, 2, 4].map(i => parseInt(wide.slice(i, i + 2), 16));
}

// prepare sizes a canvas to its box, and returns its context and width.
function prepare(canvas, height) {
	const width = canvas.parentElement.clientWidth, ratio = window.devicePixelRatio || 1;
	canvas.style.height = height + 'px';
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	const context = canvas.getContext('2d');
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	context.font = '11px system-ui, sans-serif';
	context.textBaseline = 'middle';
	return { context, width };
}

// drawTimes draws the x axis of a range from left to right at y, with lines up to top.
function drawTimes(context, left, right, y, top, from, ns) {
	const step = niceStep(ns / Math.max(2, Math.floor((right - left) / 110))), pixels = (right - left) / ns;
	const zone = step >= 3600e9 ? BigInt(new Date(Number(from / 1000000n)).getTimezoneOffset()) * 60000000000n : 0n;
	const wide = BigInt(Math.round(step));
	context.textAlign = 'center';
	for (let t = ((from - zone) / wide + 1n) * wide + zone; Number(t - from) < ns; t += wide) {
		const x = left + Number(t - from) * pixels;
		context.fillStyle = colors.line;
		context.fillRect(Math.round(x), top, 1, y - top - 8);
		context.fillStyle = colors.muted;
		if (x - left > 30 && right - x > 30) context.fillText(clock(t, step), x, y);
	}
}

// ---- Range

// zoom shows another range, in nanoseconds since the start of the current one, and adds it to the history of the browser.
function zoom(first, last) {
	const least = 1000, middle = (first + last) / 2;
	if (last - first < least) [first, last] = [middle - least / 2, middle + least / 2];
	const from = range.from + BigInt(Math.round(first)), to = range.from + BigInt(Math.round(last));
	for (const [key, value] of Object.entries(times(from < 0n ? 0n : from, to))) selection.set(key, value);
	selection.delete('cells');
	selection.delete('compare');
	const shown = { from: from < 0n ? 0n : from, to };
	history.pushState(shown, '', `${location.pathname}?${selection}`);
	show(shown);
}

// views draw the range. moved gets how much later it starts than before, in nanoseconds.
const views = [];

function show({ from, to }) {
	const later = Number(from - range.from), moved = later !== 0 || to !== range.to;
	range.from = from;
	range.to = to;
	const flame = byID('selected');
	if (flame) flame.hidden = selection.get('cells') !== firstCells;
	const step = length() / 1000;
	const text = `${new Date(Number(from / 1000000n)).toLocaleDateString('sv')} ${clock(from, step)} to ${clock(to, step)}`; // Sweden writes dates as ISO 8601
	byID('shown').textContent = `${text} (${duration(length())})`;
	if (moved) chooseInBar(text);
	for (const view of views) {
		view.moved(later);
		view.load();
	}
}

// chooseInBar makes the shown range that of the form, whose button would lead back to the one before.
function chooseInBar(text) {
	const select = [...document.querySelectorAll('.bar select')].find(s => [...s.options].some(o => o.value.startsWith('from=')));
	if (!select) return;
	const option = select.querySelector('.zoomed') || select.appendChild(Object.assign(document.createElement('option'), { className: 'zoomed' }));
	option.value = new URLSearchParams(times(range.from, range.to)).toString();
	option.textContent = text;
	option.selected = true;
}

for (const [id, first, last] of [['zoom-in', 0.25, 0.75], ['zoom-out', -0.5, 1.5], ['earlier', -0.5, 0.5], ['later', 0.5, 1.5]]) {
	byID(id).addEventListener('click', () => zoom(first * length(), last * length()));
}
addEventListener('popstate', event => {
	if (!event.state) return; // a zoom in the flame graph
	selection = new URLSearchParams(location.search);
	show(event.state);
});

let drawing = 0;
function redraw() {
	cancelAnimationFrame(drawing);
	drawing = requestAnimationFrame(() => {
		readColors();
		for (const view of views) view.draw();
	});
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
new ResizeObserver(redraw).observe(main);

window.timelineParts = { byID, range, length, clock, duration, shown, counted, load, times, addressOf, chosenCells: () => selection.get('cells') || '', colors, colorOf, nameOf, rgb, prepare, drawTimes, zoom, views };

addEventListener('DOMContentLoaded', () => { // the scripts of the views have run
	for (const e of main.querySelectorAll('.scripted')) e.hidden = false;
	readColors();
	history.replaceState({ ...range }, '');
	show(range);
});
})();
