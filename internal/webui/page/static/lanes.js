// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// This script draws the lanes of the timeline, and the flame chart of one of them.
'use strict';
(() => {

if (!window.timelineParts) return;
const { byID, range, length, clock, duration, shown, counted, load, times, colors, colorOf, nameOf, prepare, drawTimes, zoom, views } = window.timelineParts;
const lanes = { canvas: byID('lanes'), data: null, first: 0, by: 'thread', q: '', selected: 0, cursor: 0, drag: null };
const barHeight = 16, axisHeight = 20;

// Beside the bars there is room for names on wide screens; on others they stand above.
const right = () => lanes.canvas.parentElement.clientWidth - 1;
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
		if (byID('lane-at').hasChildNodes()) describe();
		await loadChart();
	} catch (error) {
		byID('lanes-status').textContent = error.message;
	}
}

const pixelsOfLanes = () => (right() - gutter()) / length();

// paintLanes draws all lanes into a picture, over which the cursor moves.
function paintLanes() {
	const data = lanes.data;
	if (!data) return;
	const { context, width } = prepare(lanes.canvas, axisHeight + Math.max(1, data.lanes.length) * rowHeight()), left = gutter();
	const pixels = pixelsOfLanes(), slot = (right() - left) / data.slots, fill = data.states.map(colorOf);
	drawTimes(context, left, right(), 8, axisHeight + data.lanes.length * rowHeight() + 8, range.from, length());
	data.lanes.forEach((lane, i) => {
		const top = axisHeight + i * rowHeight(), bar = top + rowHeight() - barHeight - 3;
		context.fillStyle = colors.fg;
		context.textAlign = 'left';
		drawText(context, lane.of ? `${lane.name} · ${lane.of}` : lane.name, 4, left ? bar + barHeight / 2 : top + 9, (left || width) - 12);
		if (lane.exact) {
			for (let k = 0; k < lane.exact.length; k += 4) {
				context.fillStyle = fill[lane.exact[k + 2]];
				const start = Math.max(0, lane.exact[k]), end = Math.min(length(), lane.exact[k] + lane.exact[k + 1]);
				context.fillRect(left + start * pixels, bar, Math.max(1, (end - start) * pixels), barHeight);
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
		context.fillRect(0, axisHeight + lanes.selected * rowHeight(), left || right(), left ? rowHeight() : rowHeight() - barHeight - 4);
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
	if (!lane || BigInt(data.from) !== range.from || BigInt(data.to) !== range.to) return; // the events of a new range are on their way
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
	const time = (event.clientX - box.left - left) / (right() - left) * length();
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
lanes.canvas.addEventListener('pointerup', event => {
	if (!lanes.drag) return;
	const { first, lane } = lanes.drag, last = laneAt(event).time;
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
		const start = Math.max(0, box.start), x = left + start * pixels, w = Math.max(0.5, (Math.min(length(), box.end) - start) * pixels), y = axisHeight + box.depth * chartRow, name = chart.data.frames[box.frame];
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

views.push({
	load: loadLanes,
	draw() {
		paintLanes();
		if (chart.key) drawChart();
	},
	moved: later => { lanes.cursor = Math.max(0, Math.min(length() - 1, lanes.cursor - later)); },
});
})();
