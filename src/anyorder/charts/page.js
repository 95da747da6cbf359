"use strict";
// What pages share: their data, figures in the colours of the page, and the choice of light or dark.
const anyorder = (() => {
  const root = document.documentElement;
  const config = JSON.parse(root.dataset.config);
  const drawn = new Map(); // the figure of each element
  const waiting = new Set(); // elements that are drawn once they come into view

  // A policy without inline style refuses the attribute, not the property.
  const setAttribute = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name, value) {
    if (name === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };

  function paint(element) {
    waiting.delete(element);
    const figure = drawn.get(element), colour = getComputedStyle(root);
    const ink = colour.getPropertyValue("--ink").trim();
    const layout = { ...figure.layout, autosize: true, font: { ...figure.layout.font, color: ink },
      hoverlabel: { bgcolor: colour.getPropertyValue("--raised").trim(), font: { color: ink } } };
    // A finger on a figure scrolls the page.
    if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false;
    return Plotly.react(element, figure.data, layout, config);
  }

  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries)
      if (isIntersecting && waiting.has(target)) paint(target);
  }, { rootMargin: "300px" });

  // Draw a figure, now or when it comes into view; again where it has changed.
  function draw(element, figure) {
    drawn.set(element, figure);
    waiting.add(element);
    seen.unobserve(element);
    seen.observe(element);
  }

  function forget(element) {
    seen.unobserve(element);
    drawn.delete(element);
    waiting.delete(element);
    Plotly.purge(element);
  }

  function isDark() {
    if (root.dataset.theme) return root.dataset.theme === "dark";
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function repaint() {
    const button = document.getElementById("theme");
    if (button) button.textContent = isDark() ? "Light" : "Dark";
    for (const element of drawn.keys()) draw(element, drawn.get(element));
  }

  function data() {
    return JSON.parse(document.getElementById("data").textContent);
  }

  root.classList.add("js");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  document.getElementById("theme")?.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    repaint();
  });
  repaint();
  return { data, draw, forget };
})();
