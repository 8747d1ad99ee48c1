/* The contents on a phone, and a search over all sections: every word must occur, titles count for more. */
(function () {
  "use strict";
  var up = document.body.dataset.up, side = document.getElementById("side"), menu = document.getElementById("menu");
  var box = document.getElementById("search"), list = document.getElementById("found");
  menu.addEventListener("click", function () {
    var shown = side.classList.toggle("shown");
    menu.setAttribute("aria-expanded", String(shown));
  });
  var here = side.querySelector("[aria-current]");
  if (here && here.offsetTop > side.clientHeight) side.scrollTop = here.offsetTop - side.clientHeight / 2;

  function score(section, words) {
    var title = (section.t + " " + section.p).toLowerCase(), text = section.x.toLowerCase(), sum = 0;
    for (var i = 0; i < words.length; i++) {
      var inTitle = title.indexOf(words[i]) >= 0, inText = text.indexOf(words[i]) >= 0;
      if (!inTitle && !inText) return 0;
      sum += inTitle ? 10 : 1;
    }
    return sum;
  }

  function excerpt(section, word) {
    var at = section.x.toLowerCase().indexOf(word), from = Math.max(0, at - 60), piece = document.createElement("span");
    if (at < 0) { piece.textContent = section.x.slice(0, 120); return piece; }
    piece.append((from ? "… " : "") + section.x.slice(from, at));
    var mark = document.createElement("mark");
    mark.textContent = section.x.slice(at, at + word.length);
    piece.append(mark, section.x.slice(at + word.length, at + 90) + " …");
    return piece;
  }

  function show() {
    var words = box.value.toLowerCase().split(/\s+/).filter(Boolean), found = [];
    list.textContent = "";
    list.hidden = !words.length;
    (window.bookIndex || []).forEach(function (section) {
      var points = words.length ? score(section, words) : 0;
      if (points) found.push([points, section]);
    });
    found.sort(function (x, y) { return y[0] - x[0]; });
    found.slice(0, 20).forEach(function (pair) {
      var row = document.createElement("li"), link = document.createElement("a"), from = document.createElement("small");
      link.href = up + "/" + pair[1].u;
      link.textContent = pair[1].t;
      from.textContent = " " + pair[1].p;
      row.append(link, from, document.createElement("br"), excerpt(pair[1], words[0]));
      list.append(row);
    });
    if (words.length && !found.length) list.textContent = "Nothing has all of these words.";
  }
  box.addEventListener("input", show);
  box.addEventListener("keydown", function (event) {
    var first = list.querySelector("a");
    if (event.key === "Enter" && first) first.click();
    if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && document.activeElement !== box) { event.preventDefault(); box.focus(); }
    if (event.key === "Escape") { box.value = ""; show(); box.blur(); }
  });
})();
