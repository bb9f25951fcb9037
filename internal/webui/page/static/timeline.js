// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// This script draws the timeline: a heatmap of samples, whose cells can be selected, lanes of threads, goroutines or
// processes with their states, and the flame chart of a lane. The server sends only what the shown range and the width
// of the window need; a change of the range is another request. Times in nanoseconds since the epoch are BigInt, and
// times within the range are numbers of nanoseconds since its start.
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

let colors = {};
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

// ---- Heatmap

const heat = { canvas: byID('heat'), left: 46, top: 4, rows: 200, data: null, counts: null, values: null, cells: null, anchor: null, dragging: false };

async function loadHeat() {
	byID('heat-status').textContent = 'Loading…';
	try {
		const data = await load('heat', '/api/timeline/heatmap', times(range.from, range.to));
		if (!data) return;
		const n = data.columns * data.rows;
		heat.data = data;
		heat.from = BigInt(data.from);
		heat.counts = new Float64Array(n);
		heat.values = new Float64Array(n);
		heat.most = 0;
		for (let i = 0; i < data.cells.length; i += 3) {
			heat.counts[data.cells[i]] = data.cells[i + 1];
			heat.values[data.cells[i]] = data.cells[i + 2];
			heat.most = Math.max(heat.most, Math.abs(data.cells[i + 2]));
		}
		const chosen = /^(\d+)-(\d+),(\d+)-(\d+)$/.exec(selection.get('cells') || '');
		heat.cells = chosen ? { c1: +chosen[1], c2: +chosen[2], r1: +chosen[3], r2: +chosen[4] } : null;
		heat.anchor = null;
		const untimed = data.untimed ? `, and ${counted(data.untimed, 'sample')} without a timestamp, which are in no cell` : '';
		byID('heat-sum').textContent = !data.type ? `No sample of this range has a timestamp. ${(data.notes || []).join(' ')}` : `${counted(heat.counts.reduce((a, b) => a + b, 0), 'sample')} of type ${data.type}${untimed}. A column is ${duration(data.column)}, a row ${duration(data.column / data.rows)}. The darkest cell has ${data.unit === 'nanoseconds' ? duration(heat.most) : heat.most.toLocaleString('en')}. ${(data.notes || []).join(' ')}`;
		drawHeat();
		describeCells();
	} catch (error) {
		byID('heat-status').textContent = error.message;
	}
}

function drawHeat() {
	const data = heat.data;
	if (!data) return;
	const { context, width } = prepare(heat.canvas, heat.top + heat.rows + 20), [r, g, b] = rgb(colors.heat), [r0, g0, b0] = rgb(colors.soft);
	heat.right = width - 2;
	const image = new ImageData(data.columns, data.rows);
	for (let i = 0; i < heat.counts.length; i++) {
		// Few samples show beside many: the color goes with the square root.
		const share = heat.counts[i] ? 0.15 + 0.85 * Math.sqrt(Math.abs(heat.values[i]) / (heat.most || 1)) : 0;
		const at = 4 * ((data.rows - 1 - i % data.rows) * data.columns + Math.floor(i / data.rows));
		image.data[at] = r0 + (r - r0) * share;
		image.data[at + 1] = g0 + (g - g0) * share;
		image.data[at + 2] = b0 + (b - b0) * share;
		image.data[at + 3] = 255;
	}
	const small = document.createElement('canvas');
	small.width = data.columns;
	small.height = data.rows;
	small.getContext('2d').putImageData(image, 0, 0);
	context.imageSmoothingEnabled = false;
	drawTimes(context, heat.left, heat.right, heat.top + heat.rows + 11, heat.top + heat.rows, heat.from, data.columns * data.column);
	context.drawImage(small, heat.left, heat.top, heat.right - heat.left, heat.rows);
	context.fillStyle = colors.muted;
	context.textAlign = 'right';
	context.fillText(duration(data.column), heat.left - 4, heat.top + 6);
	context.fillText(duration(data.column / 2), heat.left - 4, heat.top + heat.rows / 2);
	context.fillText('0', heat.left - 4, heat.top + heat.rows - 6);
	if (!heat.cells) return;
	const { c1, c2, r1, r2 } = heat.cells, w = (heat.right - heat.left) / data.columns, h = heat.rows / data.rows;
	context.fillStyle = colors.shade;
	context.strokeStyle = colors.fg;
	const box = [heat.left + c1 * w, heat.top + (data.rows - 1 - r2) * h, (c2 - c1 + 1) * w, (r2 - r1 + 1) * h];
	context.fillRect(...box);
	context.strokeRect(box[0] - 0.5, box[1] - 0.5, box[2] + 1, box[3] + 1);
}

function cellAt(event) {
	const box = heat.canvas.getBoundingClientRect(), { columns, rows } = heat.data;
	const column = Math.floor((event.clientX - box.left - heat.left) / (heat.right - heat.left) * columns);
	const row = rows - 1 - Math.floor((event.clientY - box.top - heat.top) / heat.rows * rows);
	return { column: Math.max(0, Math.min(columns - 1, column)), row: Math.max(0, Math.min(rows - 1, row)) };
}

const between = (a, b) => ({ c1: Math.min(a.column, b.column), c2: Math.max(a.column, b.column), r1: Math.min(a.row, b.row), r2: Math.max(a.row, b.row) });
const textOf = ({ c1, c2, r1, r2 }) => `${c1}-${c2},${r1}-${r2}`;

function describeCells() {
	const { data, cells } = heat;
	if (!data) return;
	byID('cell-actions').hidden = !cells;
	if (!cells) {
		byID('heat-status').textContent = 'Drag over cells, or move with the arrow keys, to select their samples.';
		return;
	}
	let count = 0;
	for (let c = cells.c1; c <= cells.c2; c++) for (let r = cells.r1; r <= cells.r2; r++) count += heat.counts[c * data.rows + r];
	const row = data.column / data.rows, at = column => clock(heat.from + BigInt(column) * BigInt(data.column), data.column);
	byID('heat-status').textContent = `${at(cells.c1)} to ${at(cells.c2 + 1)}, offset ${duration(cells.r1 * row)} to ${duration((cells.r2 + 1) * row)}: ${counted(count, 'sample')}`;
	for (const [id, compare] of [['cells-flame', null], ['cells-rest', 'rest']]) byID(id).href = addressOf({ ...times(range.from, range.to), cells: textOf(cells), compare });
	byID('cells-zoom').href = addressOf({ from: iso(heat.from + BigInt(cells.c1) * BigInt(data.column)), to: iso(heat.from + BigInt(cells.c2 + 1) * BigInt(data.column)), cells: null, compare: null });
}

function selectCells(cells) {
	heat.cells = cells;
	drawHeat();
	describeCells();
}

heat.canvas.addEventListener('pointerdown', event => {
	if (event.button || !heat.data) return;
	heat.canvas.setPointerCapture(event.pointerId);
	heat.dragging = true;
	heat.anchor = cellAt(event);
	selectCells(between(heat.anchor, heat.anchor));
});
heat.canvas.addEventListener('pointermove', event => {
	if (heat.dragging) selectCells(between(heat.anchor, cellAt(event)));
});
heat.canvas.addEventListener('pointerup', () => {
	if (!heat.dragging) return;
	heat.dragging = false;
	location.assign(byID('cells-flame').href);
});
heat.canvas.addEventListener('pointercancel', () => { heat.dragging = false; selectCells(null); });
heat.canvas.addEventListener('keydown', event => {
	if (event.ctrlKey || event.altKey || event.metaKey || !heat.data) return;
	const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }, move = moves[event.key];
	if (event.key === 'Enter' && heat.cells) location.assign(byID('cells-flame').href);
	else if (event.key === 'Escape') selectCells(heat.anchor = null);
	else if (move) {
		const { columns, rows } = heat.data, at = heat.cursor && heat.cells ? heat.cursor : { column: heat.cells ? heat.cells.c1 - move[0] : -move[0], row: heat.cells ? heat.cells.r1 : 0 };
		heat.cursor = { column: Math.max(0, Math.min(columns - 1, at.column + move[0])), row: Math.max(0, Math.min(rows - 1, at.row + move[1])) };
		if (!event.shiftKey || !heat.anchor) heat.anchor = heat.cursor;
		selectCells(between(heat.anchor, heat.cursor));
	} else return;
	event.preventDefault();
});

// ---- Lanes

const lanes = { canvas: byID('lanes'), data: null, first: 0, by: 'thread', q: '', selected: 0, cursor: 0, drag: null, right: 0 };
const barHeight = 16, axisHeight = 20;

// Beside the bars there is room for names on wide screens; on others they stand above.
const gutter = () => lanes.canvas.parentElement.clientWidth > 760 ? 280 : 0;
const rowHeight = () => gutter() ? 22 : 36;

async function loadLanes() {
	byID('lanes-status').textContent = 'Loading…';
	const slots = Math.max(50, Math.min(2000, Math.round(lanes.canvas.parentElement.clientWidth - gutter())));
	try {
		const data = await load('lanes', '/api/timeline/lanes', { ...times(range.from, range.to), slots, by: lanes.by, q: lanes.q, first: lanes.first });
		if (!data) return;
		lanes.data = data;
		lanes.cursor = Math.min(lanes.cursor, length());
		lanes.selected = Math.min(lanes.selected, Math.max(0, data.lanes.length - 1));
		const last = data.first + data.lanes.length;
		byID('lanes-count').textContent = data.all ? `${data.first + 1} to ${last} of ${counted(data.all, 'lane')}, those with most events first` : '';
		byID('lanes-previous').hidden = data.first === 0;
		byID('lanes-next').hidden = last >= data.all;
		byID('states').replaceChildren(...data.states.map(state => {
			const item = document.createElement('li'), swatch = document.createElement('span');
			swatch.className = 'swatch';
			swatch.style.background = colorOf(state);
			item.append(swatch, nameOf(state));
			return item;
		}));
		const untimed = data.untimed ? ` ${counted(data.untimed, 'sample')} without a timestamp are in no lane.` : '';
		const left = data.left ? ` ${counted(data.left, 'event')} of further lanes are not shown.` : '';
		byID('lanes-status').textContent = data.all ? `Move over a lane to see its stack.${left}${untimed} ${(data.notes || []).join(' ')}` : 'No events of threads, goroutines or processes in this range.';
		paintLanes();
		await loadChart();
	} catch (error) {
		byID('lanes-status').textContent = error.message;
	}
}

const pixelsOfLanes = () => (lanes.right - gutter()) / length();

// paintLanes draws all lanes into a picture, over which the cursor moves.
function paintLanes() {
	const data = lanes.data;
	if (!data) return;
	const { context, width } = prepare(lanes.canvas, axisHeight + Math.max(1, data.lanes.length) * rowHeight()), left = gutter();
	lanes.right = width - 1;
	const pixels = pixelsOfLanes(), slot = (lanes.right - left) / data.slots, fill = data.states.map(colorOf);
	drawTimes(context, left, lanes.right, 8, axisHeight + data.lanes.length * rowHeight() + 8, range.from, length());
	data.lanes.forEach((lane, i) => {
		const top = axisHeight + i * rowHeight(), bar = top + rowHeight() - barHeight - 3;
		context.fillStyle = colors.fg;
		context.textAlign = 'left';
		drawText(context, lane.of ? `${lane.name} · ${lane.of}` : lane.name, 4, left ? bar + barHeight / 2 : top + 9, (left || width) - 12);
		if (lane.exact) {
			for (let k = 0; k < lane.exact.length; k += 4) {
				context.fillStyle = fill[lane.exact[k + 2]];
				context.fillRect(left + lane.exact[k] * pixels, bar, Math.max(1, lane.exact[k + 1] * pixels), barHeight);
			}
			return;
		}
		for (let k = 0; k < (lane.runs || []).length; k += 4) {
			const isInstant = lane.runs[k + 2] < 0;
			context.globalAlpha = isInstant ? 1 : 0.35 + 0.65 * lane.runs[k + 3] / 100;
			context.fillStyle = isInstant ? colors.muted : fill[lane.runs[k + 2]];
			context.fillRect(left + lane.runs[k] * slot, bar + (isInstant ? barHeight - 4 : 0), Math.max(1, lane.runs[k + 1] * slot), isInstant ? 4 : barHeight);
		}
		context.globalAlpha = 1;
	});
	lanes.picture = document.createElement('canvas');
	lanes.picture.width = lanes.canvas.width;
	lanes.picture.height = lanes.canvas.height;
	lanes.picture.getContext('2d').drawImage(lanes.canvas, 0, 0);
	drawLanes();
}

let frame = 0;

// drawLanes draws the picture, the selected lane and the cursor with the next frame.
function drawLanes() {
	cancelAnimationFrame(frame);
	frame = requestAnimationFrame(() => {
		if (!lanes.picture) return;
		const context = lanes.canvas.getContext('2d'), left = gutter(), pixels = pixelsOfLanes(), bottom = lanes.canvas.clientHeight;
		context.save();
		context.setTransform(1, 0, 0, 1, 0, 0);
		context.clearRect(0, 0, lanes.canvas.width, lanes.canvas.height);
		context.drawImage(lanes.picture, 0, 0);
		context.restore();
		context.fillStyle = colors.shade;
		context.fillRect(0, axisHeight + lanes.selected * rowHeight(), left || lanes.right, left ? rowHeight() : rowHeight() - barHeight - 4);
		if (lanes.drag) {
			context.fillRect(left + Math.min(lanes.drag.first, lanes.drag.last) * pixels, axisHeight, Math.abs(lanes.drag.first - lanes.drag.last) * pixels, bottom);
			return;
		}
		context.fillStyle = colors.link;
		context.fillRect(Math.round(left + lanes.cursor * pixels), axisHeight, 1, bottom);
	});
}

// drawText draws as much of a text as fits.
function drawText(context, text, x, y, width) {
	text = shown(text.slice(0, 300));
	if (context.measureText(text).width > width) {
		let low = 0, high = text.length;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (context.measureText(text.slice(0, middle) + '…').width <= width) low = middle;
			else high = middle - 1;
		}
		text = low ? text.slice(0, low) + '…' : '';
	}
	context.fillText(text, x, y);
}

// eventAt returns the index of the last exact event that has a time, -1 if none has.
function eventAt(lane, time) {
	const events = lane.exact;
	let low = 0, high = events.length / 4;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (events[4 * middle] <= time) low = middle + 1;
		else high = middle;
	}
	const near = 2 / pixelsOfLanes(); // an instant is as wide as two pixels
	for (let k = low - 1, steps = 0; k >= 0 && steps < 200; k--, steps++) {
		if (events[4 * k] + Math.max(events[4 * k + 1], near) > time) return k;
	}
	return -1;
}

function stackOf(data, node) {
	const names = [];
	for (; node > 0; node = data.parents[node]) names.push(shown(data.frames[data.node_frames[node]]));
	return names;
}

function showEvent(data, lane, k) {
	const [start, size, state, node] = lane.exact.slice(4 * k, 4 * k + 4), from = BigInt(data.from);
	const stack = stackOf(data, node);
	setDetails(`${lane.name}: ${nameOf(data.states[state])}${size ? ', ' + duration(size) : ''}, from ${clock(from + BigInt(start), Math.max(1e3, size / 100))}`, stack.length ? stack : [node < 0 ? 'Zoom in to see the stack' : 'no stack']);
}

function setDetails(title, lines) {
	const most = 12, list = document.createElement('ol'), head = document.createElement('div');
	head.textContent = shown(title);
	for (const line of lines.slice(0, most)) {
		const item = document.createElement('li');
		item.textContent = line;
		list.append(item);
	}
	if (lines.length > most) list.append(Object.assign(document.createElement('li'), { textContent: `${lines.length - most} more callers` }));
	byID('lane-at').replaceChildren(head, list);
}

let waiting = 0;

// describe shows what the selected lane does at the cursor. Of a lane that has only slots, the server tells the slot's events.
function describe() {
	const data = lanes.data, lane = data && data.lanes[lanes.selected];
	clearTimeout(waiting);
	if (!lane) return;
	if (lane.exact) {
		const k = eventAt(lane, lanes.cursor);
		if (k >= 0) showEvent(data, lane, k);
		else setDetails(`${lane.name}: nothing at ${clock(range.from + BigInt(Math.floor(lanes.cursor)), length() / 1000)}`, []);
		return;
	}
	const slot = Math.min(data.slots - 1, Math.floor(lanes.cursor / length() * data.slots)), from = range.from + BigInt(Math.floor(length() / data.slots * slot));
	for (let k = 0; k < lane.runs.length; k += 4) {
		if (lane.runs[k] > slot || lane.runs[k] + lane.runs[k + 1] <= slot) continue;
		setDetails(`${lane.name}: ${lane.runs[k + 2] < 0 ? 'samples' : nameOf(data.states[lane.runs[k + 2]])}, ${lane.runs[k + 3]} % of ${duration(length() / data.slots)} from ${clock(from, length() / data.slots)}`, ['…']);
		waiting = setTimeout(async () => {
			try {
				const near = await load('slot', '/api/timeline/lanes', { ...times(from, from + BigInt(Math.ceil(length() / data.slots))), slots: 1, by: lanes.by, lane: lane.key });
				if (!near || !near.lanes.length) return;
				const of = near.lanes[0], events = of.exact || [];
				if (!of.exact) { setDetails(`${lane.name}: ${counted(of.events, 'event')}`, ['Zoom in to see the stack']); return; }
				let longest = 0;
				for (let i = 0; i < events.length; i += 4) if (events[i + 1] > events[longest + 1]) longest = i;
				showEvent(near, of, longest / 4);
			} catch (error) { byID('lanes-status').textContent = error.message; }
		}, 150);
		return;
	}
	setDetails(`${lane.name}: nothing at ${clock(from, length() / data.slots)}`, []);
}

function laneAt(event) {
	const box = lanes.canvas.getBoundingClientRect(), left = gutter();
	const time = (event.clientX - box.left - left) / (lanes.right - left) * length();
	return { lane: Math.floor((event.clientY - box.top - axisHeight) / rowHeight()), time: Math.max(0, Math.min(length() - 1, time)) };
}

lanes.canvas.addEventListener('pointermove', event => {
	if (!lanes.data) return;
	const { lane, time } = laneAt(event);
	if (lanes.drag) lanes.drag.last = time;
	else if (lane >= 0 && lane < lanes.data.lanes.length) {
		lanes.selected = lane;
		lanes.cursor = time;
		describe();
	}
	drawLanes();
});
lanes.canvas.addEventListener('pointerdown', event => {
	if (event.button || !lanes.data) return;
	lanes.canvas.setPointerCapture(event.pointerId);
	const { lane, time } = laneAt(event);
	lanes.drag = { first: time, last: time, lane };
});
lanes.canvas.addEventListener('pointerup', () => {
	if (!lanes.drag) return;
	const { first, last, lane } = lanes.drag;
	lanes.drag = null;
	if (Math.abs(first - last) * pixelsOfLanes() > 4) zoom(Math.min(first, last), Math.max(first, last));
	else if (lane >= 0 && lane < lanes.data.lanes.length) {
		lanes.selected = lane;
		lanes.cursor = first;
		drawLanes();
		describe();
		openChart();
	}
});
lanes.canvas.addEventListener('pointercancel', () => { lanes.drag = null; drawLanes(); });
lanes.canvas.addEventListener('keydown', event => {
	if (event.ctrlKey || event.altKey || event.metaKey || !lanes.data) return;
	const step = length() / 100, moves = { ArrowLeft: -step, ArrowRight: step, Home: -length(), End: length() };
	if (event.key in moves) lanes.cursor = Math.max(0, Math.min(length() - 1, lanes.cursor + moves[event.key]));
	else if (event.key === 'ArrowUp') lanes.selected = Math.max(0, lanes.selected - 1);
	else if (event.key === 'ArrowDown') lanes.selected = Math.min(lanes.data.lanes.length - 1, lanes.selected + 1);
	else if (event.key === '+' || event.key === '=') zoom(lanes.cursor - length() / 4, lanes.cursor + length() / 4);
	else if (event.key === '-') zoom(-length() / 2, length() * 1.5);
	else if (event.key === 'Enter') openChart();
	else return;
	event.preventDefault();
	drawLanes();
	describe();
});

// ---- Flame chart

const chart = { canvas: byID('flamechart'), key: '', data: null, boxes: [] };
const chartRow = 17, mostRows = 60;

function openChart() {
	chart.key = lanes.data.lanes[lanes.selected].key;
	loadChart();
}

// loadChart loads the exact events of the lane whose flame chart is open.
async function loadChart() {
	byID('flamechart-part').hidden = !chart.key;
	if (!chart.key) return;
	try {
		const data = await load('chart', '/api/timeline/lanes', { ...times(range.from, range.to), slots: 1, by: lanes.by, lane: chart.key });
		if (!data) return;
		chart.data = data;
		const lane = data.lanes[0];
		byID('flamechart-of').textContent = lane ? shown(lane.name) : '';
		byID('flamechart-status').textContent = !lane ? 'The lane has no events in this range.' : lane.exact ? counted(lane.events, 'event') : `${counted(lane.events, 'event')}: zoom in to see their stacks`;
		layoutChart(lane);
		drawChart();
	} catch (error) {
		byID('flamechart-status').textContent = error.message;
	}
}

// layoutChart makes boxes of depth, start, end and frame: a frame that stays on the stack from one event to the next is one box.
function layoutChart(lane) {
	chart.boxes = [];
	let open = [];
	const events = lane && lane.exact || [], touching = length() / 1e5;
	for (let k = 0; k < events.length; k += 4) {
		const [start, size, , node] = events.slice(k, k + 4), path = [];
		for (let n = node; n > 0; n = chart.data.parents[n]) path.unshift(n);
		let depth = 0;
		while (depth < open.length && depth < path.length && open[depth].node === path[depth] && start - open[depth].end <= touching) {
			open[depth].end = Math.max(open[depth].end, start + size);
			depth++;
		}
		open = open.slice(0, depth);
		for (; depth < path.length; depth++) {
			const box = { node: path[depth], depth, start, end: start + size, frame: chart.data.node_frames[path[depth]] };
			open.push(box);
			chart.boxes.push(box);
		}
	}
	chart.rows = Math.min(mostRows, 1 + chart.boxes.reduce((most, box) => Math.max(most, box.depth), 0));
}

function hue(name) {
	let hash = 0;
	for (let i = 0; i < Math.min(name.length, 200); i++) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
	return hash % 36 * 10;
}

function drawChart() {
	if (!chart.data) return;
	const { context, width } = prepare(chart.canvas, axisHeight + chart.rows * chartRow), left = gutter(), pixels = (width - 1 - left) / length();
	const dark = matchMedia('(prefers-color-scheme: dark)').matches;
	drawTimes(context, left, width - 1, 8, axisHeight, range.from, length());
	context.textAlign = 'left';
	for (const box of chart.boxes) {
		if (box.depth >= mostRows) continue;
		const x = left + box.start * pixels, w = Math.max(0.5, (box.end - box.start) * pixels), y = axisHeight + box.depth * chartRow, name = chart.data.frames[box.frame];
		context.fillStyle = dark ? `hsl(${hue(name)} 30% 28%)` : `hsl(${hue(name)} 55% 82%)`;
		context.fillRect(x, y, w > 3 ? w - 0.5 : w, chartRow - 1);
		if (w > 30) {
			context.fillStyle = colors.fg;
			drawText(context, name, x + 3, y + chartRow / 2, w - 6);
		}
	}
}

chart.canvas.addEventListener('pointermove', event => {
	if (!chart.data) return;
	const box = chart.canvas.getBoundingClientRect(), left = gutter(), time = (event.clientX - box.left - left) / (box.width - 1 - left) * length();
	const depth = Math.floor((event.clientY - box.top - axisHeight) / chartRow), found = chart.boxes.find(b => b.depth === depth && b.start <= time && time < b.end);
	if (found) byID('flamechart-status').textContent = `${shown(chart.data.frames[found.frame])}: ${duration(Math.round(found.end - found.start))} from ${clock(range.from + BigInt(Math.floor(found.start)), Math.max(1e3, (found.end - found.start) / 100))}`;
});
byID('flamechart-close').addEventListener('click', () => {
	chart.key = '';
	byID('flamechart-part').hidden = true;
	lanes.canvas.focus();
});

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

function show({ from, to }) {
	const cursor = range.from + BigInt(Math.floor(lanes.cursor));
	range.from = from;
	range.to = to;
	lanes.cursor = Math.max(0, Math.min(length() - 1, Number(cursor - from)));
	const flame = byID('selected');
	if (flame) flame.hidden = selection.get('cells') !== firstCells;
	heat.cells = heat.cursor = null;
	const step = length() / 1000;
	byID('shown').textContent = `${new Date(Number(from / 1000000n)).toLocaleDateString()} ${clock(from, step)} to ${clock(to, step)} (${duration(length())})`;
	loadHeat();
	loadLanes();
}

for (const [id, first, last] of [['zoom-in', 0.25, 0.75], ['zoom-out', -0.5, 1.5], ['earlier', -0.5, 0.5], ['later', 0.5, 1.5]]) {
	byID(id).addEventListener('click', () => zoom(first * length(), last * length()));
}
addEventListener('popstate', event => {
	if (!event.state) return; // a zoom in the flame graph
	selection = new URLSearchParams(location.search);
	show(event.state);
});
byID('lanes-form').addEventListener('submit', event => {
	event.preventDefault();
	lanes.q = byID('lanes-q').value;
	lanes.first = 0;
	loadLanes();
});
byID('lanes-by').addEventListener('change', () => {
	lanes.by = byID('lanes-by').value;
	lanes.first = 0;
	chart.key = '';
	loadLanes();
});
for (const [id, step] of [['lanes-previous', -30], ['lanes-next', 30]]) {
	byID(id).addEventListener('click', () => {
		lanes.first = Math.max(0, lanes.first + step);
		loadLanes();
	});
}

let drawing = 0;
function redraw() {
	cancelAnimationFrame(drawing);
	drawing = requestAnimationFrame(() => {
		readColors();
		drawHeat();
		paintLanes();
		if (chart.key) drawChart();
	});
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
new ResizeObserver(redraw).observe(main);

for (const e of main.querySelectorAll('.scripted')) e.hidden = false;
readColors();
history.replaceState({ ...range }, '');
show(range);
})();
