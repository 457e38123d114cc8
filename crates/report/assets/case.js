"use strict";
// A case on a page: its table of results, the picture of the chosen result, and the proof step by
// step. Reports and the local page share this file. Everything that comes from an input enters the
// page through textContent or attributes, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** Builds an element; children are nodes or texts. */
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Builds an SVG element. */
function svgEl(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Formats a duration in milliseconds in a sensible unit. */
function duration(millis) {
  if (millis === undefined || millis === null) return "";
  if (millis < 1) return `${Math.round(millis * 1000)} µs`;
  if (millis < 1000) return `${millis.toFixed(millis < 10 ? 1 : 0)} ms`;
  return `${(millis / 1000).toFixed(1)} s`;
}


/** Colours and meanings of relations; the page fills it in. */
const look = { palette: { "": ["#7a3e9d", "#cf9bef"] }, meanings: {} };

// -------------------------------------------------------------------------------------- case

const shown = { row: 0, step: 0, view: "", hidden: new Set(), timer: 0 };

/** Builds the view of a case; `links` stands above its heading. */
function caseView(data, links) {
  shown.row = Math.max(0, data.rows.findIndex((row) => row.scene !== undefined && row.scene !== null && row.cells.some((cell) => String(cell).startsWith("violation"))));
  shown.hidden = new Set();
  const facts = el("p", { class: "muted" }, data.facts.map(([name, value]) => `${name}: ${value}`).join(" · "));
  const side = el("div");
  const picture = el("section", { class: "picture", "aria-label": "picture" });
  const body = el("tbody");
  const choose = (row) => {
    shown.row = row;
    shown.step = 0;
    shown.view = "";
    stop();
    [...body.children].forEach((tr, i) => tr.setAttribute("aria-selected", i === row));
    showRow(data, data.rows[row], side, picture);
  };
  data.rows.forEach((row, i) => {
    const cells = row.cells.map((value, column) => {
      const text = data.columns[column] === "time" ? duration(value) : String(value ?? "");
      const content = column === 0 ? el("button", { onclick: (e) => { e.stopPropagation(); choose(i); } }, text) : text;
      return el("td", { class: column === 1 ? text.split(" ")[0] : "" }, content);
    });
    body.append(el("tr", { class: "link", onclick: () => choose(i) }, ...cells));
  });
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...data.columns.map((name) => el("th", { scope: "col" }, name)))), body);
  const history = data.text ? el("details", { open: data.text.length < 1500 }, el("summary", {}, "input"), el("pre", { tabindex: 0 }, data.text), copyButton("copy", data.text)) : null;
  const recheck = data.recheck ? el("p", {}, el("span", { class: "muted" }, "Check it again: "), el("code", {}, data.recheck), " ", copyButton("copy", data.recheck)) : null;
  const view = el("div", { class: "case" }, el("div", {}, links, el("h1", {}, data.title), facts, table, side, history, recheck), picture);
  if (data.rows.length) choose(shown.row);
  return view;
}

function copyButton(name, text) {
  const button = el("button", { onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = el("textarea", {}, text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(() => (button.textContent = name), 1200);
  } }, name);
  return button;
}

function showRow(data, row, side, picture) {
  side.replaceChildren();
  picture.replaceChildren();
  const scene = row.scene === undefined || row.scene === null ? null : data.scenes[row.scene];
  if (scene && scene.scene.steps.length) side.append(stepper(scene, picture));
  if (row.text) {
    const details = el("details", { open: !(scene && scene.scene.steps.length) }, el("summary", {}, "explanation"), el("pre", { tabindex: 0 }, row.text), copyButton("copy as text", row.text));
    side.append(details);
  }
  if (row.certificate) {
    const json = JSON.stringify(row.certificate);
    const name = `certificate-${String(row.cells[0]).replace(/[^\w.-]+/g, "-")}.json`;
    const url = URL.createObjectURL(new Blob([json], { type: "application/json" }));
    side.append(el("p", {}, el("a", { href: url, download: name }, "download the certificate")));
  }
  if (scene) showPicture(scene, picture);
  else picture.append(el("p", { class: "muted" }, "This result has no picture."));
}

// ------------------------------------------------------------------------------------- steps

function stop() {
  clearInterval(shown.timer);
  shown.timer = 0;
}

/** Builds the list of steps with a slider and buttons. */
function stepper(scene, picture) {
  const steps = scene.scene.steps;
  const items = steps.map((step, i) => el("li", { onclick: () => go(i + 1) }, step.sentence));
  const slider = el("input", { type: "range", min: 0, max: steps.length, value: 0, "aria-label": "step", oninput: (e) => go(Number(e.target.value)) });
  const where = el("span", { class: "muted", role: "status" });
  const play = el("button", { id: "play", onclick: () => {
    if (shown.timer) return stop(), (play.textContent = "play");
    play.textContent = "pause";
    if (shown.step >= steps.length) go(0);
    shown.timer = setInterval(() => {
      if (shown.step >= steps.length) return stop(), (play.textContent = "play");
      go(shown.step + 1);
    }, 1200);
  } }, "play");
  const go = (step) => {
    shown.step = Math.max(0, Math.min(steps.length, step));
    slider.value = shown.step;
    where.textContent = shown.step ? `step ${shown.step} of ${steps.length}` : `${steps.length} steps`;
    items.forEach((item, i) => (i + 1 === shown.step ? item.setAttribute("aria-current", "step") : item.removeAttribute("aria-current")));
    if (shown.step) items[shown.step - 1].scrollIntoView({ block: "nearest" });
    light(scene, picture);
  };
  shown.go = go;
  const buttons = el("div", { class: "tools" },
    el("button", { id: "previous", onclick: () => go(shown.step - 1), title: "previous step ( p )" }, "previous"),
    el("button", { id: "next", onclick: () => go(shown.step + 1), title: "next step ( n )" }, "next"),
    play, slider, where);
  queueMicrotask(() => go(0));
  return el("section", { "aria-label": "steps" }, el("h2", {}, "Step by step"), buttons, el("ol", { class: "steps" }, ...items));
}

/** Highlights what the current step is about: its edges, their premises, its nodes. */
function light(scene, picture) {
  const svg = picture.querySelector("svg");
  if (!svg) return;
  const step = scene.scene.steps[shown.step - 1];
  svg.classList.toggle("stepping", Boolean(step) && (step.edges.length > 0 || step.nodes.length > 0));
  svg.querySelectorAll(".lit, .support").forEach((node) => node.classList.remove("lit", "support"));
  if (!step) return;
  const nodes = new Set(step.nodes);
  for (const edge of step.edges) {
    svg.querySelector(`[data-edge="${edge}"]`)?.classList.add("lit");
    nodes.add(scene.scene.edges[edge].from).add(scene.scene.edges[edge].to);
    for (const premise of scene.scene.edges[edge].because ?? []) {
      svg.querySelector(`[data-edge="${premise}"]`)?.classList.add("support");
    }
  }
  for (const node of nodes) svg.querySelector(`[data-node="${node}"]`)?.classList.add("lit");
}

// ----------------------------------------------------------------------------------- picture

const isDark = matchMedia("(prefers-color-scheme: dark)");

function colour(relation) {
  const [light, dark] = look.palette[relation] ?? look.palette[""];
  return isDark.matches ? dark : light;
}

function showPicture(scene, picture) {
  const views = Object.keys(scene.views);
  if (!shown.view || !scene.views[shown.view]) shown.view = views[0];
  const view = scene.views[shown.view];
  const stage = el("div", { class: "stage" });
  const svg = draw(scene.scene, view, shown.view === "time");
  stage.append(svg);
  const relations = [...new Set(scene.scene.edges.map((edge) => edge.relation))].filter(Boolean);
  const boxes = shown.view === "time" ? [] : relations.map((relation) => {
    const box = el("input", { type: "checkbox", checked: !shown.hidden.has(relation), onchange: (e) => {
      e.target.checked ? shown.hidden.delete(relation) : shown.hidden.add(relation);
      svg.querySelectorAll("[data-relation]").forEach((g) => { if (g.dataset.relation === relation) g.style.display = e.target.checked ? "" : "none"; });
    } });
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = colour(relation);
    const meaning = look.meanings[relation];
    return el("label", { class: "relation", title: meaning || relation }, box, swatch, relation);
  });
  const zoom = panAndZoom(svg, view);
  const tools = el("div", { class: "tools", role: "toolbar", "aria-label": "picture" },
    ...(views.length > 1 ? views.map((name) => el("button", { "aria-pressed": name === shown.view, onclick: () => { shown.view = name; picture.replaceChildren(); showPicture(scene, picture); light(scene, picture); } }, name === "time" ? "time view" : name === "order" ? "order view" : name)) : []),
    el("button", { onclick: () => zoom.by(1.25), "aria-label": "zoom in", title: "zoom in ( + )" }, "+"),
    el("button", { onclick: () => zoom.by(0.8), "aria-label": "zoom out", title: "zoom out ( - )" }, "−"),
    el("button", { onclick: zoom.fit, title: "fit ( 0 )" }, "fit"),
    ...boxes);
  shown.zoom = zoom;
  picture.append(el("h2", {}, scene.scene.title), scene.scene.caption ? el("p", { class: "muted" }, scene.scene.caption) : "", tools, stage,
    ...scene.scene.notes.map((note) => el("p", { class: "muted" }, note)));
}

/** Draws a view; the geometry was computed when the report was written. */
function draw(scene, view, isTime) {
  const svg = svgEl("svg", { role: "img", tabindex: 0, preserveAspectRatio: "xMidYMin meet", "aria-label": `${scene.title}. ${scene.caption}`, viewBox: `0 0 ${view.width} ${view.height}` });
  for (const [x, y, width, height] of view.lanes) svg.append(svgEl("rect", { class: "lane", x, y, width, height, rx: 8 }));
  view.bands.forEach(([x, y, width, height], i) => {
    svg.append(svgEl("rect", { class: "band", x, y, width, height }));
    const label = svgEl("text", { class: "band-name", x: x + 3, y: y + 12 });
    label.textContent = scene.bands[i].label;
    svg.append(label);
  });
  view.names.forEach(([x, y], i) => {
    const name = svgEl("text", { class: "name", x, y, "text-anchor": isTime ? "start" : "middle" });
    name.textContent = scene.lanes[i]?.name ?? "";
    svg.append(name);
  });
  const rank = { context: 0, premise: 1, cycle: 2 };
  const order = scene.edges.map((_, i) => i).sort((a, b) => rank[scene.edges[a].role] - rank[scene.edges[b].role] || a - b);
  for (const i of order) {
    const route = view.edges[i];
    if (route) svg.append(drawEdge(scene, i, route));
  }
  scene.nodes.forEach((node, i) => {
    const box = view.nodes[i];
    if (box) svg.append(drawNode(node, i, box));
  });
  return svg;
}

function drawEdge(scene, i, route) {
  const edge = scene.edges[i];
  const paint = colour(edge.relation);
  const width = edge.role === "cycle" ? 2.4 : 1.3;
  const d = rounded(route.points);
  const group = svgEl("g", { class: `edge ${edge.basis}`, "data-edge": i, "data-relation": edge.relation });
  group.append(svgEl("path", { class: "halo", d, "stroke-width": width + 3 }), svgEl("path", { class: "line", d, stroke: paint, "stroke-width": width }));
  const [tip, before] = [route.points.at(-1), route.points.at(-2)];
  const length = Math.hypot(tip[0] - before[0], tip[1] - before[1]) || 1;
  const [dx, dy] = [(tip[0] - before[0]) / length, (tip[1] - before[1]) / length];
  const [bx, by] = [tip[0] - dx * 9, tip[1] - dy * 9];
  group.append(svgEl("polygon", { points: `${tip} ${bx - dy * 4},${by + dx * 4} ${bx + dy * 4},${by - dx * 4}`, fill: paint }));
  if (edge.relation) {
    const [x, y, w, h] = route.label;
    const label = svgEl("text", { x: x + w / 2, y: y + 11, fill: paint });
    label.textContent = edge.relation;
    group.append(svgEl("rect", { x, y, width: w, height: h, rx: 3 }), label);
  }
  const from = scene.nodes[edge.from].id;
  const to = scene.nodes[edge.to].id;
  const meaning = look.meanings[edge.relation];
  hint(group, `${from} → ${to} (${edge.relation}${meaning ? `: ${meaning}` : ""})${edge.why ? `\n${edge.why}` : ""}`);
  return group;
}

function drawNode(node, i, [x, y, width, height]) {
  const group = svgEl("g", { class: `node ${node.kind} ${node.emphasis}`, "data-node": i }, svgEl("rect", { x, y, width, height, rx: 6 }));
  const first = y + height / 2 - ((node.lines.length - 1) * 17) / 2 + 4.5;
  node.lines.forEach((line, k) => {
    const text = svgEl("text", { x: x + width / 2, y: first + k * 17 });
    text.textContent = line;
    group.append(text);
  });
  if (node.place) {
    const place = svgEl("text", { class: "place", x: x + 4, y: y + 10 });
    place.textContent = node.place;
    group.append(place);
  }
  const time = node.start === undefined ? "" : `\n${node.start} to ${node.end ?? "(no end)"}`;
  hint(group, `${node.id}  ${node.lines.join("; ")}${node.detail ? `\n${node.detail}` : ""}${time}`);
  return group;
}

function rounded(points) {
  let d = `M${points[0]}`;
  for (let i = 1; i + 1 < points.length; i++) {
    const [a, b, c] = [points[i - 1], points[i], points[i + 1]];
    const towards = (p) => {
      const length = Math.hypot(p[0] - b[0], p[1] - b[1]) || 1;
      const part = Math.min(6, length / 2) / length;
      return [b[0] + (p[0] - b[0]) * part, b[1] + (p[1] - b[1]) * part];
    };
    d += `L${towards(a)}Q${b} ${towards(c)}`;
  }
  return `${d}L${points.at(-1)}`;
}

/** Shows a text beside the pointer while it is over a part of the picture. */
function hint(node, text) {
  node.append(Object.assign(svgEl("title"), { textContent: text }));
  node.addEventListener("pointermove", (e) => {
    const tip = document.getElementById("tip");
    tip.textContent = text;
    tip.hidden = false;
    tip.style.left = `${Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  });
  node.addEventListener("pointerleave", () => (document.getElementById("tip").hidden = true));
}

function panAndZoom(svg, view) {
  let box = { x: 0, y: 0, w: view.width, h: view.height };
  const apply = () => svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.w} ${box.h}`);
  const by = (factor, at = { x: box.x + box.w / 2, y: box.y + box.h / 2 }) => {
    const w = Math.min(view.width * 4, Math.max(40, box.w / factor));
    const scale = w / box.w;
    box = { x: at.x - (at.x - box.x) * scale, y: at.y - (at.y - box.y) * scale, w, h: box.h * scale };
    apply();
  };
  const move = (dx, dy) => {
    box.x += dx * box.w;
    box.y += dy * box.h;
    apply();
  };
  const fit = () => {
    box = { x: 0, y: 0, w: view.width, h: view.height };
    apply();
  };
  const point = (e) => {
    const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return { x: at.x, y: at.y };
  };
  let grabbed = null;
  svg.addEventListener("wheel", (e) => {
    e.preventDefault();
    by(e.deltaY < 0 ? 1.15 : 1 / 1.15, point(e));
  }, { passive: false });
  svg.addEventListener("pointerdown", (e) => {
    grabbed = point(e);
    svg.setPointerCapture(e.pointerId);
    svg.classList.add("dragging");
  });
  svg.addEventListener("pointermove", (e) => {
    if (!grabbed) return;
    const at = point(e);
    box.x += grabbed.x - at.x;
    box.y += grabbed.y - at.y;
    apply();
  });
  const release = () => {
    grabbed = null;
    svg.classList.remove("dragging");
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("keydown", (e) => {
    const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    if (moves[e.key]) {
      e.preventDefault();
      move(...moves[e.key]);
    }
  });
  return { by, fit };
}

/** Handles the keys that pictures and steps share; returns whether the key was one of them. */
function pictureKey(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, textarea, select")) return false;
  const keys = {
    n: () => shown.go?.(shown.step + 1),
    p: () => shown.go?.(shown.step - 1),
    "+": () => shown.zoom?.by(1.25),
    "-": () => shown.zoom?.by(0.8),
    0: () => shown.zoom?.fit(),
  };
  if (!keys[e.key]) return false;
  e.preventDefault();
  keys[e.key]();
  return true;
}
