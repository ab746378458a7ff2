// site.js: search, code that opens where a link leads, names on hover
"use strict";
const byId = (id) => document.getElementById(id);
const words = byId("words"), found = byId("found"), codes = byId("codes");
let index;

function load() {	// the index is loaded when it is first asked for
	index ??= new Promise((done) => {
		const script = document.createElement("script");
		script.src = "search.js";
		script.onload = () => done(unpack(site));
		document.head.append(script);
	});
	return index;
}
const lines = (text) => text.split("\n").slice(1);

function unpack({pages, entries, ...packed}) {
	const chunks = [null], all = [...entries];
	for (const line of lines(packed.chunks)) {
		const [, page, first, users, name] =
			line.match(/^(\d+) (\d*) ([\d,]*) (.*)$/);
		chunks.push({page, name: first ? chunks[first].name : name,
			is_first: !first, users: users ? users.split(",") : []});
	}
	for (const line of lines(packed.identifiers)) {
		const [, chunk, text] = line.match(/^(\d+) (.*)$/);
		all.push([text, chunks[chunk].page, `c${chunk}`, "i"]);
	}
	chunks.forEach((chunk, k) => {
		if (chunk?.is_first) all.push([chunk.name, chunk.page, `c${k}`, "c"]);
	});
	let word = "";
	const lists = lines(packed.words).map((line) => {
		const [rest, steps] = line.slice(1).split(" ");
		word = word.slice(0, parseInt(line[0], 36)) + rest;
		return [word, steps];
	});
	return {pages, entries: all, chunks, words: lists};
}
function pagesOf(steps) {
	const number = (n, letter) => 26 * n + parseInt(letter, 36) - 10;
	let page = -1;
	return steps.match(/[a-z]*[A-Z]/g).map((letters) =>
		page += 1 + [...letters].reduce(number, 0));
}
const kinds = {h: "heading", t: "term", i: "identifier", c: "chunk"};

function named({pages, entries}, asked) {
	const hits = [];
	for (const [text, page, id, kind] of entries) {
		const low = text.toLowerCase();
		if (!asked.every((word) => low.includes(word))) continue;
		const part = low === asked.join(" ") ? 0
			: low.startsWith(asked[0]) ? 1 : 2;
		hits.push({rank: part * 4 + "thic".indexOf(kind), text,
			to: `${pages[page][0]}#${id}`,
			where: `${kinds[kind]}, ${pages[page][1]}`});
	}
	return hits.sort((a, b) =>
		a.rank - b.rank || a.text.length - b.text.length);
}
function inText({pages, words: lists}, asked) {
	let left = null;
	for (const word of asked) {
		const here = new Set();
		for (const [key, steps] of lists)
			if (key.startsWith(word)) pagesOf(steps).forEach((p) => here.add(p));
		left = left ? new Set([...left].filter((p) => here.has(p))) : here;
	}
	return [...left].sort((a, b) => a - b).map((page) =>
		({text: pages[page][1], to: pages[page][0], where: "in the text"}));
}
function show(hits) {
	const list = document.createElement("ul");
	for (const {text, to, where} of hits) {
		const item = document.createElement("li");
		const link = document.createElement("a");
		const small = document.createElement("small");
		link.href = to;
		link.textContent = text;
		small.textContent = where;
		item.append(link, small);
		list.append(item);
	}
	found.replaceChildren(hits.length ? list : "Nothing is found.");
	found.hidden = false;
}

async function search() {
	const asked = words.value.toLowerCase().split(/[\s\u27e8\u27e9]+/)
		.filter(Boolean);
	if (!asked.length) { found.hidden = true; return; }
	const site = await load();
	show([...named(site, asked).slice(0, 40),
		...inText(site, asked).slice(0, 40)]);
}
function close() { found.hidden = true; }
words.addEventListener("focus", load);
words.addEventListener("input", search);
words.form.addEventListener("submit", (event) => {
	event.preventDefault();
	found.querySelector("a")?.click();
});
words.form.addEventListener("keydown", (event) => {
	const links = [words, ...found.querySelectorAll("a")];
	const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
	if (event.key === "Escape") { close(); words.focus(); }
	if (!step || found.hidden) return;
	event.preventDefault();
	links[links.indexOf(document.activeElement) + step]?.focus();
});
words.form.addEventListener("focusout", (event) => {
	if (event.relatedTarget && !words.form.contains(event.relatedTarget)) close();
});
document.addEventListener("click", (event) => {
	if (!words.form.contains(event.target) || event.target.closest("#found a"))
		close();
});
function openTarget() {
	const target = byId(decodeURIComponent(location.hash.slice(1)));
	if (target?.tagName === "DETAILS") target.open = true;
	target?.scrollIntoView();
}
addEventListener("hashchange", openTarget);
openTarget();

const chunks = document.querySelectorAll("details.chunk");
codes.hidden = !chunks.length;
codes.addEventListener("click", () => {
	const open = codes.getAttribute("aria-pressed") !== "true";
	chunks.forEach((chunk) => { chunk.open = open; });
	codes.setAttribute("aria-pressed", open);
});
document.querySelectorAll(".equation").forEach((box) => {
	if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
});
if (innerWidth < 960) document.querySelector("#contents details").open = false;
const present = document.querySelector("#contents [aria-current]");
if (present) {	// the contents alone scroll to it, not the page
	const box = present.closest("details");
	box.scrollTop = present.offsetTop - box.clientHeight / 2;
}
async function describe(event) {	// what a link to a chunk leads to
	const link = event.target.closest?.('a[href*="#c"]');
	const id = link?.hash.slice(1);
	if (!/^c\d+$/.test(id) || link.title) return;
	const {chunks, pages} = await load();
	const {name, page, users} = chunks[id.slice(1)];
	link.title = `\u27e8${name}\u27e9 in ${pages[page][1]}` + (users.length
		? `; used in ${users.map((user) => chunks[user].name).join(", ")}` : "");
}
addEventListener("mouseover", describe);
addEventListener("focusin", describe);
