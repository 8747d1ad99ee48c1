// Runs the script of a report's page on elements that only keep their texts, and prints these: node report_words.js PAGE
"use strict";
const fs = require("fs");
const scripts = [...fs.readFileSync(process.argv[2], "utf8").matchAll(/<script>([^]*?)<\/script>/g)].map(m => m[1]);
class Element {
  constructor() { this.children = []; this.style = {}; this.text = ""; }
  appendChild(child) { this.children.push(child); return child; }
  addEventListener() {}
  set textContent(text) { this.text = text; this.children = []; }
  words() { return [this.text, ...this.children.flatMap(c => c.words())]; }
}
const named = {};
global.document = {getElementById: id => named[id] = named[id] || new Element(), createElement: () => new Element(), documentElement: {}};
global.getComputedStyle = () => ({getPropertyValue: () => "#000"});
global.matchMedia = () => new Element();
global.addEventListener = () => {};
global.innerWidth = 1000;
global.Chart = class { destroy() {} resize() {} };
Chart.defaults = {font: {}};
(0, eval)(scripts.pop().replace('"use strict";', ""));
console.log(Object.values(named).flatMap(e => e.words()).filter(text => text).join("\n"));
