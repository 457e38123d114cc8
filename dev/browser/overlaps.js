// Draws every picture of a report and returns the overlaps: the browser measures the boxes, with its
// own fonts. Runs inside the page of a report.

const overlaps = {
  /** Returns whether two boxes share more than a hair. */
  meet(a, b) {
    const hair = 0.5;
    return a.x + hair < b.x + b.width && b.x + hair < a.x + a.width && a.y + hair < b.y + b.height && b.y + hair < a.y + a.height;
  },

  /** Returns whether a segment enters a box. */
  crosses([[x1, y1], [x2, y2]], box) {
    // The part of the segment inside of the box, after Liang and Barsky.
    const hair = 0.5;
    let [from, to] = [0, 1];
    for (const [p, q] of [
      [x1 - x2, x1 - box.x - hair], [x2 - x1, box.x + box.width - hair - x1],
      [y1 - y2, y1 - box.y - hair], [y2 - y1, box.y + box.height - hair - y1],
    ]) {
      if (p === 0) {
        if (q < 0) return false;
      } else if (p < 0) from = Math.max(from, q / p);
      else to = Math.min(to, q / p);
    }
    return from < to;
  },

  /** Checks one view of a scene; returns sentences. */
  view(scene, view, isTime, stage) {
    const found = [];
    const svg = draw(scene, view, isTime);
    svg.setAttribute("width", view.width);
    svg.setAttribute("height", view.height);
    stage.replaceChildren(svg);
    const nodes = [...svg.querySelectorAll(".node")].map((group) => {
      const box = group.querySelector("rect").getBBox();
      const texts = [...group.querySelectorAll("text")].map((text) => text.getBBox());
      for (const text of texts) {
        const isInside = text.x >= box.x - 0.5 && text.x + text.width <= box.x + box.width + 0.5 && text.y >= box.y - 2 && text.y + text.height <= box.y + box.height + 2;
        if (!isInside) found.push(`text of ${group.textContent} is cut`);
      }
      texts.forEach((a, i) => texts.slice(i + 1).forEach((b) => {
        // Lines of one label are close to each other; their boxes include the leading.
        const flat = (box) => ({ x: box.x, y: box.y + 2.5, width: box.width, height: box.height - 5 });
        if (overlaps.meet(flat(a), flat(b))) found.push(`texts of ${group.textContent} overlap`);
      }));
      return { box, name: group.textContent };
    });
    nodes.forEach((a, i) => nodes.slice(i + 1).forEach((b) => {
      if (overlaps.meet(a.box, b.box)) found.push(`${a.name} overlaps ${b.name}`);
    }));
    const edges = [...svg.querySelectorAll(".edge")].map((group) => {
      const text = group.querySelector("text");
      const points = view.edges[Number(group.dataset.edge)].points;
      return { name: group.textContent, label: text && text.textContent ? text.getBBox() : null, lines: points.slice(1).map((point, i) => [points[i], point]) };
    });
    // Beads do not overlap texts, other bars or each other; labels of the axis do not overlap each other.
    const beads = [...svg.querySelectorAll(".bead")].map((group) => ({ box: group.querySelector("rect").getBBox(), text: group.querySelector("text").getBBox(), node: Number(group.dataset.bead), name: group.textContent }));
    beads.forEach((a, i) => {
      if (a.text.x < a.box.x || a.text.x + a.text.width > a.box.x + a.box.width) found.push(`text of bead ${a.name} is cut`);
      beads.slice(i + 1).forEach((b) => overlaps.meet(a.box, b.box) && found.push(`beads ${a.name} and ${b.name} overlap`));
      for (const group of svg.querySelectorAll(".node")) {
        const isOwn = Number(group.dataset.node) === a.node;
        const box = isOwn ? group.querySelector("text").getBBox() : group.querySelector("rect").getBBox();
        const inner = isOwn ? { x: box.x, y: box.y + 2.5, width: box.width, height: box.height - 5 } : box;
        if (overlaps.meet(a.box, inner)) found.push(`bead ${a.name} overlaps ${group.textContent}`);
      }
    });
    const ticks = [...svg.querySelectorAll(".tick")].map((text) => ({ box: text.getBBox(), name: text.textContent }));
    ticks.forEach((a, i) => {
      if (a.box.x < 0 || a.box.x + a.box.width > view.width || a.box.y + a.box.height > view.height) found.push(`label ${a.name} of the axis is cut`);
      ticks.slice(i + 1).forEach((b) => overlaps.meet(a.box, b.box) && found.push(`labels ${a.name} and ${b.name} of the axis overlap`));
      for (const node of nodes) if (overlaps.meet(a.box, node.box)) found.push(`label ${a.name} of the axis overlaps ${node.name}`);
    });
    const names = [...svg.querySelectorAll(".name, .band-name")].map((text) => ({ box: text.getBBox(), name: text.textContent }));
    names.forEach((a, i) => names.slice(i + 1).forEach((b) => {
      if (a.name && b.name && overlaps.meet(a.box, b.box)) found.push(`names ${a.name} and ${b.name} overlap`);
    }));
    for (const { box, name } of names) {
      for (const node of nodes) if (overlaps.meet(box, node.box)) found.push(`name ${name} overlaps ${node.name}`);
      if (box.x < 0 || box.x + box.width > view.width) found.push(`name ${name} is cut`);
    }
    edges.forEach((edge, i) => {
      for (const line of edge.lines) {
        for (const node of nodes) if (overlaps.crosses(line, node.box)) found.push(`an edge ${edge.name} runs over ${node.name}`);
      }
      if (!edge.label) return;
      if (edge.label.x < 0 || edge.label.x + edge.label.width > view.width) found.push(`label ${edge.name} is cut`);
      for (const node of nodes) if (overlaps.meet(edge.label, node.box)) found.push(`label ${edge.name} overlaps ${node.name}`);
      for (const { box, name } of names) if (overlaps.meet(edge.label, box)) found.push(`label ${edge.name} overlaps the name ${name}`);
      edges.forEach((other, j) => {
        if (j === i) return;
        if (j > i && other.label && overlaps.meet(edge.label, other.label)) found.push(`labels ${edge.name} and ${other.name} overlap`);
        if (other.lines.some((line) => overlaps.crosses(line, edge.label))) found.push(`an edge ${other.name} runs over the label ${edge.name}`);
      });
    });
    return found;
  },

  /** Checks all pictures of some cases; returns how many were drawn, and what was found. */
  async report(from, to) {
    const stage = document.createElement("div");
    document.body.append(stage);
    const found = [];
    let pictures = 0;
    for (let index = from; index < Math.min(to, overview.cases.length); index++) {
      const data = await detailOf(index);
      for (const picture of data.scenes.flatMap((picture) => (picture.core ? [picture, picture.core] : [picture]))) {
        for (const [name, view] of Object.entries(picture.views)) {
          pictures += 1;
          for (const sentence of overlaps.view(picture.scene, view, name === "time", stage)) found.push(`case ${index}, ${name}: ${sentence}`);
        }
      }
    }
    stage.remove();
    return [pictures, overview.cases.length, found.slice(0, 20)];
  },
};
