// look.js: looks at pages in a frame of two widths, and says what is wrong
"use strict";
const frame = document.querySelector("iframe");
const say = (...words) =>
	document.querySelector("pre").append(`look: ${words.join(" ")}\n`);
const rest = (ms) => new Promise((done) => setTimeout(done, ms));

function show(page, width) {
	frame.style.width = `${width}px`;
	return new Promise((done) => {
		frame.onload = done;
		frame.src = folder + page;
	});
}
function luminance(color) {
	const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	const [r, g, b] = color.match(/[\d.]+/g).map((v) => linear(v / 255));
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(element) {
	const style = (e) => frame.contentWindow.getComputedStyle(e);
	let behind = element;
	const clear = (e) => /^rgba.*, 0\)$/.test(style(e).backgroundColor);
	while (behind.parentElement && clear(behind)) behind = behind.parentElement;
	const both = [style(element).color, style(behind).backgroundColor]
		.map(luminance).sort((a, b) => b - a);
	return (both[0] + 0.05) / (both[1] + 0.05);
}
function look(page, width) {
	const text = frame.contentDocument, root = text.documentElement;
	const wide = () => root.scrollWidth > root.clientWidth;
	if (wide()) say(page, width, "scrolls sideways");
	text.querySelectorAll("details").forEach((e) => { e.open = true; });
	if (wide()) say(page, width, "scrolls sideways with its code");
	for (const e of text.querySelectorAll("pre, .wide, .equation"))
		if (e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0 &&
			!e.querySelector("a, button, summary"))
			say(page, width, "has a box that no key can scroll");
	const kinds = {};
	const kind_of = ({tagName, className, parentElement: within}) =>
		`${tagName} ${className} ${within.className}`;
	for (const e of text.querySelectorAll("body *"))
		if (e.firstChild?.nodeType === 3) kinds[kind_of(e)] ??= e;
	for (const kind in kinds)
		if (contrast(kinds[kind]) < 4.5) say(page, "is pale in", kind);
}
async function ask(term) {	// the search's first answer has to be the term
	const text = frame.contentDocument, words = text.getElementById("words");
	const found = text.getElementById("found");
	found.replaceChildren();
	words.value = term;
	words.dispatchEvent(new Event("input"));
	for (let i = 0; i < 100 && !found.firstChild; i++) await rest(100);
	const first = found.querySelector("li");
	if (first?.querySelector("a").textContent !== term ||
		!first.querySelector("small").textContent.startsWith("term"))
		say("the search does not find", term);
}
(async () => {
	for (const width of [400, 1400])
		for (const page of pages) {
			await show(page, width);
			look(page, width);
		}
	for (const term of terms) await ask(term);
	say("done");
})();
