// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// This script draws the flame graph. Its data is a tree of stacks: each node has a frame, which is a function, and
// a parent before it. A value has a side 0, and in a difference a side 1, the base. What a reader chooses is in the fragment of
// the address: the function f whose callers and callees are shown, the path zoom of the box that is as wide as the page (up
// among callers), the search, and which of the switches are on.
'use strict';
(async () => {

const byID = id => document.getElementById(id);
const canvas = byID('canvas'), chart = byID('chart'), search = byID('search'), tip = byID('tip');
const switches = ['merge', 'collapse', 'beside'].map(byID).filter(e => e);
const rowHeight = 19, smallest = 0.5, smallBox = 2;
let raw, data, sides = 1, difference = false, all;

// Long work is cut into tasks, so that the page answers meanwhile.
const longest = 40; // milliseconds
let taskStart = performance.now();
async function breathe() {
	if (performance.now() - taskStart > longest) {
		await new Promise(resolve => setTimeout(resolve));
		taskStart = performance.now();
	}
}

// ---- Trees

// layout returns a tree with what drawing needs. Parents stand before children, and node 0 is the root. Levels have
// their nodes from left to right, and children the heaviest first.
async function layout(frames, parents, self, order) {
	const count = frames.length, totals = self.map(values => Float64Array.from(values));
	const weights = new Float64Array(count), starts = new Float64Array(count), depths = new Int32Array(count);
	const heights = new Int32Array(count), first = new Int32Array(count).fill(-1), next = new Int32Array(count);
	for (let i = count - 1; i >= 0; i--) {
		const parent = parents[i];
		for (const total of totals) {
			weights[i] += total[i];
			if (i > 0) total[parent] += total[i];
		}
		if (i > 0) {
			heights[parent] = Math.max(heights[parent], heights[i] + 1);
			next[i] = first[parent];
			first[parent] = i;
		}
		if (i % 10000 === 0) await breathe();
	}
	const levels = [[0]];
	for (let depth = 0; levels[depth].length > 0; depth++) {
		const below = [];
		for (const i of levels[depth]) {
			const children = [];
			for (let child = first[i]; child >= 0; child = next[child]) children.push(child);
			children.sort((a, b) => (order || weights)[b] - (order || weights)[a] || a - b);
			let start = starts[i];
			for (const child of children) {
				starts[child] = start;
				start += weights[child];
				depths[child] = depth + 1;
				below.push(child);
			}
		}
		levels.push(below);
		await breathe();
	}
	levels.pop();
	return { frames, parents, totals, self, weights, starts, depths, heights, levels };
}

// grower makes a tree from paths.
function grower(frame) {
	const frames = [frame], parents = [-1], self = Array.from({ length: sides }, () => [0]), known = new Map();
	return {
		frames, parents, self,
		child(parent, frame) {
			const key = parent * raw.names.length + frame;
			let node = known.get(key);
			if (node === undefined) {
				node = frames.length;
				known.set(key, node);
				frames.push(frame);
				parents.push(parent);
				for (const values of self) values.push(0);
			}
			return node;
		},
	};
}

// outermost returns the nodes of a frame that are not below another one of it.
function outermost(frame) {
	const inside = new Uint8Array(all.frames.length), found = [];
	for (let i = 0; i < inside.length; i++) {
		inside[i] = i > 0 ? inside[all.parents[i]] : 0;
		if (all.frames[i] === frame && !inside[i]) {
			inside[i] = 1;
			found.push(i);
		}
	}
	return { inside, found };
}

// calleesOf merges what all nodes of a frame call.
async function calleesOf(frame) {
	const { inside, found } = outermost(frame), grown = grower(frame), places = new Int32Array(inside.length);
	const isTop = new Uint8Array(inside.length);
	for (const i of found) isTop[i] = 1;
	for (let i = 0; i < inside.length; i++) {
		if (!inside[i]) continue;
		if (!isTop[i]) places[i] = grown.child(places[all.parents[i]], all.frames[i]);
		for (let side = 0; side < sides; side++) grown.self[side][places[i]] += all.self[side][i];
		if (i % 1000 === 0) await breathe();
	}
	return layout(grown.frames, grown.parents, grown.self);
}

// callersOf merges the paths to all nodes of a frame. Values are at the ends of paths, which are their roots.
async function callersOf(frame) {
	const grown = grower(frame), most = 400000;
	let steps = 0;
	for (const i of outermost(frame).found) {
		let node = 0;
		for (let caller = all.parents[i]; caller > 0 && grown.frames.length < most; caller = all.parents[caller]) {
			node = grown.child(node, all.frames[caller]);
			if (++steps % 1000 === 0) await breathe();
		}
		for (let side = 0; side < sides; side++) grown.self[side][node] += all.totals[side][i];
	}
	return layout(grown.frames, grown.parents, grown.self);
}

// changed returns the data with functions of one name as one, and with calls of a function by itself as one, if that is chosen.
async function changed(merge, collapse) {
	if (!merge && !collapse) return raw;
	const first = new Map(), frameOf = raw.names.map((name, i) => {
		if (!merge || i === 0) return i; // 0 is the root
		if (!first.has(name)) first.set(name, i);
		return first.get(name);
	});
	const grown = grower(0), places = new Int32Array(raw.parents.length);
	for (let i = 0; i < places.length; i++) {
		const frame = frameOf[raw.frames[i]], parent = i > 0 ? places[raw.parents[i]] : 0;
		places[i] = i === 0 || collapse && parent > 0 && grown.frames[parent] === frame ? parent : grown.child(parent, frame);
		for (let side = 0; side < sides; side++) grown.self[side][places[i]] += raw.self[side][i];
		if (i % 1000 === 0) await breathe();
	}
	const { frames, parents, self } = grown, empty = () => self.map(() => new Array(raw.names.length).fill(0));
	const totals = self.map(values => Float64Array.from(values)), functionSelf = empty(), functionTotal = empty();
	for (let i = frames.length - 1; i >= 0; i--) {
		let caller = parents[i];
		while (caller >= 0 && frames[caller] !== frames[i]) caller = parents[caller];
		for (let side = 0; side < sides; side++) {
			if (i > 0) totals[side][parents[i]] += totals[side][i];
			functionSelf[side][frames[i]] += self[side][i];
			if (caller < 0) functionTotal[side][frames[i]] += totals[side][i];
		}
		if (i % 1000 === 0) await breathe();
	}
	const files = raw.places.slice();
	frameOf.forEach((frame, i) => { if (frame !== i) files[frame] = 'several files'; });
	return { ...raw, places: files, frames, parents, self, functionSelf, functionTotal };
}

// ---- Texts

// shown makes characters visible that are not, or that change the direction of text.
function shown(text) {
	return text.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, c => c < ' ' ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : '\ufffd');
}

function digits(v) {
	return Math.abs(v) >= 100 ? v.toFixed(0) : String(Number(v.toPrecision(3)));
}

function quantity(v) {
	let chosen = data.scales[0];
	for (const s of data.scales) if (s.size <= Math.abs(v)) chosen = s;
	return digits(v / chosen.size) + chosen.name;
}

const percentage = (v, total) => total ? digits(100 * v / total) + ' %' : '';
const signed = v => (v > 0 ? '+' : '') + quantity(v);
const relative = (now, base) => base > 0 ? (now > base ? '+' : '') + percentage(now - base, base) : now > 0 ? 'new' : 'no change';
const withShare = (v, total) => quantity(v) + (total ? ' (' + percentage(v, total) + ')' : '');

// values writes the values of a node, or of a function.
function values(name, now, base) {
	const [allNow, allBase] = all.totals.map(total => total[0]);
	if (!difference) return name + ' ' + withShare(now, allNow);
	return name + ' base ' + withShare(base, allBase) + ', shown ' + withShare(now, allNow) + ', change ' + signed(now - base) + ' (' + relative(now, base) + ')';
}

function describe(pane, node) {
	const tree = isBeside() ? all : pane.tree, frame = tree.frames[node], lines = [shown(data.names[frame])];
	if (data.places[frame]) lines.push(shown(data.places[frame]));
	lines.push(values('Total', ...tree.totals.map(total => total[node])));
	if (pane.direction > 0) lines.push(values('Self', ...tree.self.map(self => self[node])));
	else if (node > 0) lines.push('Of the calls of ' + shortName(tree.frames[0]));
	if (difference && tree.weights[node] < data.few) lines.push('Too little to tell a change from chance');
	return lines;
}

function setLines(element, lines) {
	element.replaceChildren(...lines.map(line => {
		const row = document.createElement('div');
		row.textContent = line;
		return row;
	}));
}

function shortName(frame) {
	const text = shown(data.names[frame]);
	return text.length > 60 ? text.slice(0, 60) + '…' : text;
}

// ---- State

// A pane is a tree that grows down (direction 1) or up (-1), of which the part below zoom is drawn, from a share of the width to another one.
let panes = [], focus = -1, selected = { pane: 0, node: 0 }, hovered = null, matched = null;
const isOn = id => byID(id) !== null && byID(id).checked;
const isBeside = () => panes.length > 1 && panes[1].direction > 0;

// show draws the whole tree (frame -1), or the callers and callees of a frame. zooms are paths of names.
let showing = 0;
async function show(frame, zooms) {
	const current = ++showing;
	taskStart = performance.now();
	let made;
	if (frame >= 0) {
		const callees = await calleesOf(frame), callers = await callersOf(frame);
		made = [{ tree: callees, direction: 1 }, { tree: callers, direction: -1 }];
	} else if (isOn('beside')) {
		const of = side => layout(all.frames, all.parents, [all.self[side]], all.weights);
		made = [{ tree: await of(1), direction: 1, side: 1, right: 0.5 }, { tree: await of(0), direction: 1, side: 0, left: 0.5 }];
	} else {
		made = [{ tree: all, direction: 1 }];
	}
	if (current !== showing) return; // another one was chosen meanwhile
	panes = made.map((pane, i) => ({ left: 0, right: 1, ...pane, zoom: nodeOf(pane.tree, zooms[pane.side === undefined ? i : 0] || []) }));
	focus = frame;
	hovered = null;
	tip.hidden = true;
	select(0, panes[0].zoom);
	showPath();
	draw(); // sets the height
	if (frame >= 0) chart.scrollTop = (upRows() + 0.5) * rowHeight - chart.clientHeight / 2;
}

// nodeOf returns the last node on a path of names that the tree has, and pathOf the path of a node.
function nodeOf(tree, path) {
	let node = 0;
	for (const name of path) {
		const child = (tree.levels[tree.depths[node] + 1] || []).find(i => tree.parents[i] === node && data.names[tree.frames[i]] === name);
		if (child === undefined) break;
		node = child;
	}
	return node;
}

function pathOf(tree, node) {
	const path = [];
	for (; node > 0; node = tree.parents[node]) path.unshift(data.names[tree.frames[node]]);
	return path;
}

// fragment writes what is chosen.
function fragment(frame, zooms) {
	const chosen = new URLSearchParams();
	if (frame >= 0) chosen.set('f', data.names[frame]);
	(zooms[0] || []).forEach(name => chosen.append('zoom', name));
	(zooms[1] || []).forEach(name => chosen.append('up', name));
	if (search.value) chosen.set('search', search.value);
	for (const e of switches) if (e.checked) chosen.set(e.id, 'on');
	const text = String(chosen);
	return location.pathname + location.search + (text && '#' + text);
}

const currentZooms = () => isBeside() ? [pathOf(panes[0].tree, panes[0].zoom)] : panes.map(pane => pathOf(pane.tree, pane.zoom));

// open shows something else and adds it to the history of the browser.
function open(frame, zooms) {
	history.pushState(null, '', fragment(frame, zooms));
	return show(frame, zooms);
}

// restore shows what the fragment says.
let restoring = 0;
async function restore() {
	const current = ++restoring, chosen = new URLSearchParams(location.hash.slice(1));
	search.value = chosen.get('search') || '';
	for (const e of switches) e.checked = chosen.has(e.id);
	const made = await changed(isOn('merge'), isOn('collapse')), tree = await layout(made.frames, made.parents, made.self);
	if (current !== restoring) return; // something else was chosen meanwhile
	data = made;
	all = tree;
	readColors();
	await breathe();
	find(false);
	await show(chosen.has('f') ? data.names.indexOf(chosen.get('f'), 1) : -1, [chosen.getAll('zoom'), chosen.getAll('up')]);
}

const zoomTo = (pane, node) => open(focus, isBeside() ? [pathOf(panes[pane].tree, node)] :
	panes.map((p, i) => pathOf(p.tree, i === pane ? node : p.zoom)));

function select(pane, node) {
	selected = { pane, node };
	setLines(byID('details'), describe(panes[pane], node));
	byID('actions').hidden = panes[pane].tree.frames[node] === 0;
	byID('copied').textContent = '';
}

// showPath shows where the zoom is.
function showPath() {
	const steps = [['all', () => open(-1, [])]];
	if (focus >= 0) steps.push(['callers and callees of ' + shortName(focus), () => open(focus, [])]);
	(isBeside() ? panes.slice(0, 1) : panes).forEach((pane, p) => {
		const tree = pane.tree, ancestors = [];
		for (let i = pane.zoom; i > 0; i = tree.parents[i]) ancestors.unshift(i);
		for (const i of ancestors) steps.push([shortName(tree.frames[i]), () => zoomTo(p, i)]);
	});
	byID('path').replaceChildren(...steps.map(([text, action]) => button(text, action)));
}

function button(text, action) {
	const made = document.createElement('button');
	made.type = 'button';
	made.textContent = text;
	made.addEventListener('click', action);
	return made;
}

// find marks the frames that the search matches, and sums their samples, each once.
function find(isNew) {
	const text = search.value;
	if (isNew) history.replaceState(null, '', fragment(focus, currentZooms()));
	matched = null;
	let share = '';
	if (text !== '') {
		let expression;
		try {
			expression = new RegExp(text, 'i');
		} catch {
			expression = { test: name => name.includes(text) };
		}
		matched = Uint8Array.from(data.names, (name, i) => i > 0 && expression.test(name) ? 1 : 0);
		const inside = new Uint8Array(all.frames.length), sums = all.totals.map(() => 0);
		for (let i = 1; i < inside.length; i++) {
			inside[i] = inside[all.parents[i]];
			if (inside[i] || !matched[all.frames[i]]) continue;
			inside[i] = 1;
			all.totals.forEach((total, side) => { sums[side] += total[i]; });
		}
		const count = matched.reduce((sum, match) => sum + match, 0);
		share = count + (count === 1 ? ' function: ' : ' functions: ') + values('Total', ...sums);
	}
	byID('matches').textContent = share;
	showTable();
	redraw();
}

// ---- Drawing

let colors = {}, frameColors = [], charWidth = 7;

// readColors takes those of the style, and gives each package one of its own.
function readColors() {
	const style = getComputedStyle(document.body), dark = matchMedia('(prefers-color-scheme: dark)').matches;
	for (const name of ['bg', 'fg', 'muted', 'match', 'small', 'link', 'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7']) colors[name] = style.getPropertyValue('--' + name);
	frameColors = data.names.map(name => {
		const end = name.search(/[.:(<]/, name.lastIndexOf('/')), start = name.lastIndexOf('/') + 1;
		const dot = name.indexOf('.', start), packageName = name.slice(0, Math.min(200, dot < 0 ? end < 0 ? name.length : end : dot));
		let hash = 0;
		for (let i = 0; i < packageName.length; i++) hash = (hash * 31 + packageName.charCodeAt(i)) >>> 0;
		const hue = hash % 36 * 10;
		return dark ? `hsl(${hue} 30% 28%)` : `hsl(${hue} 55% 82%)`;
	});
}

// changeClass is the number of a color of the legend.
function changeClass(node, tree) {
	if (isBeside()) tree = all; // which has the same nodes
	const [now, base] = tree.totals.map(total => total[node]);
	if (tree.weights[node] < data.few) return 7;
	if (now === 0) return 0;
	if (base === 0) return 6;
	const ratio = now / base;
	return ratio < 0.5 ? 1 : ratio < 0.9 ? 2 : ratio <= 1.1 ? 3 : ratio <= 2 ? 4 : 5;
}

const upRows = () => panes.length > 1 && panes[1].direction < 0 ? rowsOf(panes[1]) - 1 : 0;
const rowsOf = pane => pane.tree.depths[pane.zoom] + pane.tree.heights[pane.zoom] + 1;

// firstFrom returns the index in a level of the first node that starts at x or later, from an index on.
function firstFrom(tree, level, x, from) {
	let low = from, high = level.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (tree.starts[level[middle]] < x) low = middle + 1;
		else high = middle;
	}
	return low;
}

// boxes calls box for each node of a row that is wide enough, and small for each run of those that are not.
function boxes(pane, depth, width, box, small) {
	const { starts, weights, levels, depths } = pane.tree, level = levels[depth] || [];
	const from = starts[pane.zoom], pixels = width / weights[pane.zoom];
	let i = depth <= depths[pane.zoom] ? Math.max(0, firstFrom(pane.tree, level, from, 0) - 1) : firstFrom(pane.tree, level, from, 0);
	for (; i < level.length && (starts[level[i]] - from) * pixels < width;) {
		const node = level[i], left = Math.max(0, (starts[node] - from) * pixels);
		const right = Math.min(width, (starts[node] + weights[node] - from) * pixels);
		if (right - left >= smallBox) {
			box(node, left, right - left);
			i++;
			continue;
		}
		let end = right;
		while (i < level.length) {
			const start = (starts[level[i]] - from) * pixels, size = weights[level[i]] * pixels;
			if (size >= smallBox || start > end + smallest || start >= width) break;
			end = Math.max(end, start + size);
			// Of the nodes that start within a narrow one's place, the last may be wide.
			i = size < smallest ? Math.max(i + 1, firstFrom(pane.tree, level, starts[level[i]] + smallest / pixels, i) - 1) : i + 1;
		}
		if (end - left >= smallest) small(left, Math.min(width, end) - left);
		if (i < level.length && level[i] === node) i++;
	}
}

let drawn = 0;
function redraw() {
	if (!drawn) drawn = requestAnimationFrame(draw);
}

function draw() {
	cancelAnimationFrame(drawn);
	drawn = 0;
	const rows = upRows() + Math.max(...panes.filter(pane => pane.direction > 0).map(rowsOf)), height = rows * rowHeight;
	byID('rows').style.height = height + 'px';
	const width = chart.clientWidth, visible = chart.clientHeight, ratio = window.devicePixelRatio || 1;
	canvas.style.height = visible + 'px';
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(visible * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(visible * ratio);
	}
	const context = canvas.getContext('2d');
	context.setTransform(ratio, 0, 0, ratio, 0, -chart.scrollTop * ratio);
	context.clearRect(0, chart.scrollTop, width, visible);
	context.font = '12px ui-monospace, monospace';
	context.textBaseline = 'middle';
	charWidth = context.measureText('m').width;
	const lastRow = Math.min(rows - 1, Math.floor((chart.scrollTop + visible) / rowHeight));
	for (let row = Math.floor(chart.scrollTop / rowHeight); row <= lastRow; row++) {
		const top = row * rowHeight;
		for (const [pane, depth] of placesOf(row)) {
			const { tree, zoom, left: share, right } = panes[pane], begin = share * width;
			if (tree.weights[zoom] === 0) continue;
			boxes(panes[pane], depth, (right - share) * width - (right < 1 ? 2 : 0), (node, left, size) => drawBox(context, pane, node, begin + left, top, size), (left, size) => {
				context.globalAlpha = 1;
				context.fillStyle = colors.small;
				context.fillRect(begin + left, top, Math.max(size, smallest), rowHeight - 1);
			});
		}
	}
}

function drawBox(context, pane, node, left, top, size) {
	const tree = panes[pane].tree, frame = tree.frames[node], isMatch = matched && matched[frame];
	const change = difference ? changeClass(node, tree) : -1;
	context.globalAlpha = matched && !isMatch ? 0.45 : 1;
	context.fillStyle = isMatch ? colors.match : difference ? colors['c' + change] : frame === 0 ? colors.small : frameColors[frame];
	context.fillRect(left, top, size - (size > 3 ? 1 : 0), rowHeight - 1);
	if (selected.pane === pane && selected.node === node || hovered && panes[hovered.pane].tree.frames[hovered.node] === frame) {
		context.globalAlpha = 1;
		context.strokeStyle = selected.node === node && selected.pane === pane ? colors.link : colors.fg;
		context.lineWidth = 2;
		context.strokeRect(left + 1, top + 1, size - 3, rowHeight - 3);
	}
	const room = Math.floor((size - 8) / charWidth);
	if (room < 3) return;
	context.fillStyle = isMatch ? '#fff' : change === 7 ? colors.muted : colors.fg;
	context.fillText(fitting(shown(data.names[frame]), room), left + 4, top + rowHeight / 2);
}

// fitting shortens a name to what fits: without its type arguments, the path of its package, or else at its end.
function fitting(text, room) {
	if (/[^\u0020-\u024f…]/.test(text)) room = Math.floor(room / 2); // wide characters
	const start = text.indexOf('[', 1), end = text.lastIndexOf(']');
	if (text.length > room && 0 < start && start < end) text = text.slice(0, start + 1) + '…' + text.slice(end);
	if (text.length > room) text = text.slice(text.lastIndexOf('/') + 1);
	return text.length > room ? text.slice(0, Math.max(1, room - 1)) + '…' : text;
}

// placesOf returns the panes and depths of a row.
function placesOf(row) {
	const up = upRows();
	if (row < up) return [[1, up - row]];
	return panes.length > 1 && panes[1].direction > 0 ? [[0, row], [1, row]] : [[0, row - up]];
}

// nodeAt returns the box at a place of the window.
function nodeAt(event) {
	const area = canvas.getBoundingClientRect(), x = event.clientX - area.left, y = event.clientY - area.top + chart.scrollTop;
	let found = null;
	for (const [pane, depth] of placesOf(Math.floor(y / rowHeight))) {
		const { left: share, right } = panes[pane], begin = share * area.width;
		boxes(panes[pane], depth, (right - share) * area.width, (node, left, size) => {
			if (begin + left <= x && x < begin + left + size) found = { pane, node };
		}, () => {});
	}
	return found;
}

// ---- Table

// The functions whose own values changed come first: the totals of their callers have changed as much.
const columnsOf = () => difference ? [
	['Self change', f => signed(data.functionSelf[0][f] - data.functionSelf[1][f]), f => Math.abs(data.functionSelf[0][f] - data.functionSelf[1][f])],
	['Base', f => quantity(data.functionTotal[1][f]), f => data.functionTotal[1][f]],
	['Shown', f => quantity(data.functionTotal[0][f]), f => data.functionTotal[0][f]],
	['Change', f => signed(data.functionTotal[0][f] - data.functionTotal[1][f]), f => Math.abs(data.functionTotal[0][f] - data.functionTotal[1][f])],
	['%', f => relative(data.functionTotal[0][f], data.functionTotal[1][f]), null],
] : [
	['Self', f => quantity(data.functionSelf[0][f]), f => data.functionSelf[0][f]],
	['%', f => percentage(data.functionSelf[0][f], data.functionTotal[0][0]), null],
	['Total', f => quantity(data.functionTotal[0][f]), f => data.functionTotal[0][f]],
	['%', f => percentage(data.functionTotal[0][f], data.functionTotal[0][0]), null],
];
// isNarrowed reports whether a narrow screen leaves out a column.
const isNarrowed = title => title === '%' || title === 'Base';
let sorted = -1, descending = true; // by a column; -1 is the name

// showTable shows the functions that the search matches, or all, the first ones by the chosen order.
function showTable() {
	const columns = columnsOf(), table = byID('functions'), most = 100, found = [];
	const key = sorted >= 0 ? columns[sorted][2] : null, total = data.functionTotal[0], weight = f => data.functionTotal.reduce((sum, side) => sum + side[f], 0);
	for (let f = 1; f < data.names.length; f++) if ((!matched || matched[f]) && data.names[f] !== '(other)' && weight(f) > 0) found.push(f);
	const sign = descending ? 1 : -1;
	found.sort((a, b) => sign * (key ? key(b) - key(a) : data.names[b] < data.names[a] ? -1 : data.names[b] > data.names[a] ? 1 : 0) || total[b] - total[a] || a - b);
	const head = (name, i, sortable) => {
		const made = cell('th', sortable ? button(name, () => {
			descending = sorted === i ? !descending : i >= 0;
			sorted = i;
			showTable();
		}) : name, isNarrowed(name));
		made.scope = 'col';
		if (i === sorted) made.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
		return made;
	};
	const hadFocus = table.tHead.contains(document.activeElement) && [...table.tHead.rows[0].cells].indexOf(document.activeElement.closest('th'));
	table.tHead.rows[0].replaceChildren(head('Function', -1, true), ...columns.map(([name, , order], i) => head(name, i, order)));
	if (hadFocus >= 0 && hadFocus !== false) table.tHead.rows[0].cells[hadFocus].querySelector('button')?.focus();
	table.caption.textContent = found.length > most ? `Functions: the first ${most} of ${found.length}` : `Functions: ${found.length}`;
	table.tBodies[0].replaceChildren(...found.slice(0, most).map(f => {
		const row = document.createElement('tr'), name = document.createElement('bdi'), place = document.createElement('span');
		name.className = 'name';
		name.append(button(shown(data.names[f]), () => {
			open(f, []);
			if (byID('flame').getBoundingClientRect().top < 0) byID('flame').scrollIntoView();
		}));
		place.className = 'place';
		place.textContent = shown(data.places[f]);
		if (data.places[f].length > 300) place.tabIndex = 0; // it may scroll
		const head = cell('th', name);
		head.scope = 'row';
		head.append(' ', place);
		row.append(head, ...columns.map(([title, text]) => cell('td', text(f), isNarrowed(title))));
		return row;
	}));
}

function cell(kind, content, isShare) {
	const made = document.createElement(kind);
	made.append(content);
	if (isShare) made.className = 'share';
	return made;
}

// ---- Input

canvas.addEventListener('pointermove', event => {
	const found = nodeAt(event);
	if ((found && found.pane) !== (hovered && hovered.pane) || (found && found.node) !== (hovered && hovered.node)) {
		hovered = found;
		if (found) setLines(tip, describe(panes[found.pane], found.node));
		redraw();
	}
	tip.hidden = !found || event.pointerType === 'touch';
	if (tip.hidden) return;
	const { width, height } = tip.getBoundingClientRect();
	tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 4)) + 'px';
	tip.style.top = (event.clientY + 16 + height > innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 16) + 'px';
});
canvas.addEventListener('pointerleave', () => {
	hovered = null;
	tip.hidden = true;
	redraw();
});
canvas.addEventListener('click', event => {
	const found = nodeAt(event);
	if (found) zoomTo(found.pane, found.node);
});
chart.addEventListener('scroll', redraw);
search.addEventListener('input', () => find(true));
for (const e of switches) e.addEventListener('change', () => {
	history.pushState(null, '', fragment(focus, currentZooms()));
	restore();
});
search.addEventListener('keydown', event => {
	if (event.key === 'Enter') event.preventDefault();
	if (event.key === 'Escape') canvas.focus();
});
byID('sandwich').addEventListener('click', () => sandwich());
byID('copy').addEventListener('click', copyName);
byID('reset').addEventListener('click', () => {
	search.value = '';
	for (const e of switches) e.checked = false;
	history.pushState(null, '', fragment(-1, []));
	restore();
});
addEventListener('popstate', restore);
new ResizeObserver(redraw).observe(chart);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
	readColors();
	redraw();
});
document.addEventListener('keydown', event => {
	if (event.key === '/' && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
		event.preventDefault();
		search.focus();
	}
});

function sandwich() {
	const frame = panes[selected.pane].tree.frames[selected.node];
	if (frame > 0) open(frame, []);
}

// copyName copies the name of the selected box. A page without HTTPS has no clipboard but the one of a selection.
async function copyName() {
	const name = data.names[panes[selected.pane].tree.frames[selected.node]];
	try {
		await navigator.clipboard.writeText(name);
	} catch {
		const field = document.body.appendChild(Object.assign(document.createElement('textarea'), { value: name }));
		field.select();
		document.execCommand('copy');
		field.remove();
	}
	byID('copied').textContent = 'Copied';
}

// move selects the box in a direction, if there is one.
function move(key) {
	const { pane, node } = selected, { tree, direction } = panes[pane], level = tree.levels[tree.depths[node]];
	const place = level.indexOf(node), childOf = (other, of) => (panes[other].tree.levels[panes[other].tree.depths[of] + 1] || []).find(i => panes[other].tree.parents[i] === of);
	const away = direction > 0 ? 'ArrowDown' : 'ArrowUp';
	let target;
	if (key === 'Home') target = [pane, panes[pane].zoom];
	else if (key === 'ArrowLeft') target = [pane, level[place - 1]];
	else if (key === 'ArrowRight') target = [pane, level[place + 1]];
	else if (key === away) target = [pane, childOf(pane, node)];
	else if (node > 0) target = [tree.parents[node] === 0 && direction < 0 ? 0 : pane, tree.parents[node]];
	else if (panes.length > 1) target = [1 - pane, isBeside() ? 0 : childOf(1 - pane, 0)];
	if (!target || target[1] === undefined) return;
	select(...target);
	const depth = panes[target[0]].tree.depths[target[1]], row = upRows() + panes[target[0]].direction * depth;
	if (row * rowHeight < chart.scrollTop) chart.scrollTop = row * rowHeight;
	if ((row + 1) * rowHeight > chart.scrollTop + chart.clientHeight) chart.scrollTop = (row + 1) * rowHeight - chart.clientHeight;
	redraw();
}

canvas.addEventListener('keydown', event => {
	if (event.ctrlKey || event.altKey || event.metaKey) return;
	if (/^(Arrow|Home)/.test(event.key)) move(event.key);
	else if (event.key === 'Enter') zoomTo(selected.pane, selected.node);
	else if (event.key === 's' || event.key === 'S') sandwich();
	else if (event.key === 'c' || event.key === 'C') copyName();
	else if (event.key === 'Escape') open(panes.some(pane => pane.zoom > 0) ? focus : -1, []);
	else return;
	event.preventDefault();
});

// load takes the data of the page.
async function load() {
	raw = JSON.parse(byID('data').textContent);
	sides = raw.self.length;
	difference = sides > 1;
	if (sorted < 0 && descending) sorted = 0;
	byID('flame').hidden = false;
	await breathe();
	await restore();
}

document.addEventListener('newdata', load);
await load();
})();
