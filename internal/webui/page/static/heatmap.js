// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// This script draws the heatmap of the timeline, and selects cells of it.
'use strict';
(() => {

if (!window.timelineParts) return;
const { byID, range, clock, duration, counted, load, times, addressOf, chosenCells, colors, rgb, prepare, drawTimes, views } = window.timelineParts;
const heat = { canvas: byID('heat'), left: 46, top: 4, rows: 200, data: null, counts: null, values: null, cells: null, anchor: null, dragging: false };

const right = () => heat.canvas.parentElement.clientWidth - 2;

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
		const chosen = /^(\d+)-(\d+),(\d+)-(\d+)$/.exec(chosenCells());
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
	const { context } = prepare(heat.canvas, heat.top + heat.rows + 20), [r, g, b] = rgb(colors.heat), [r0, g0, b0] = rgb(colors.soft);
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
	drawTimes(context, heat.left, right(), heat.top + heat.rows + 11, heat.top + heat.rows, heat.from, data.columns * data.column);
	context.drawImage(small, heat.left, heat.top, right() - heat.left, heat.rows);
	context.fillStyle = colors.muted;
	context.textAlign = 'right';
	context.fillText(duration(data.column), heat.left - 4, heat.top + 6);
	context.fillText(duration(data.column / 2), heat.left - 4, heat.top + heat.rows / 2);
	context.fillText('0', heat.left - 4, heat.top + heat.rows - 6);
	if (!heat.cells) return;
	const { c1, c2, r1, r2 } = heat.cells, w = (right() - heat.left) / data.columns, h = heat.rows / data.rows;
	context.fillStyle = colors.shade;
	context.strokeStyle = colors.fg;
	const box = [heat.left + c1 * w, heat.top + (data.rows - 1 - r2) * h, (c2 - c1 + 1) * w, (r2 - r1 + 1) * h];
	context.fillRect(...box);
	context.strokeRect(box[0] - 0.5, box[1] - 0.5, box[2] + 1, box[3] + 1);
}

function cellAt(event) {
	const box = heat.canvas.getBoundingClientRect(), { columns, rows } = heat.data;
	const column = Math.floor((event.clientX - box.left - heat.left) / (right() - heat.left) * columns);
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
	byID('cells-zoom').href = addressOf({ ...times(heat.from + BigInt(cells.c1) * BigInt(data.column), heat.from + BigInt(cells.c2 + 1) * BigInt(data.column)), cells: null, compare: null });
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

views.push({ load: loadHeat, draw: drawHeat, moved: () => { heat.cells = heat.cursor = null; } });
})();
