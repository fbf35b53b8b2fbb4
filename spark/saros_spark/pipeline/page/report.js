// Draws the charts of the report, each when it comes into view. Data become text and pixels, never markup.
"use strict";
{
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const HEIGHT = 170;
  const FILLS = { medium: "rgba(245, 196, 81, 0.35)", long: "rgba(226, 87, 76, 0.3)", flag: "rgba(106, 76, 156, 0.16)" };
  const LABELS = [
    [31536000, "{YYYY}", null, null, null, null, null, null, 1],
    [2419200, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
    [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
    [0.001, ":{ss}.{fff}", "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, "\n{MM}-{DD} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
  ];
  const drawn = new Map();

  const shown = (value) => (value == null ? "–" : String(Number(value.toPrecision(6))));

  // Shade times between `start` and `end`, at least a pixel wide.
  function shade(plot, start, end, fill) {
    const { left, top, width, height } = plot.bbox;
    const from = Math.max(plot.valToPos(start, "x", true), left);
    const to = Math.min(plot.valToPos(end, "x", true), left + width);
    if (to < left || from > left + width) return;
    plot.ctx.fillStyle = fill;
    plot.ctx.fillRect(from, top, Math.max(to - from, devicePixelRatio), height);
  }

  function marks(chart) {
    return {
      hooks: {
        drawClear: (plot) => {
          for (const flag of chart.flags) for (const [start, end] of flag.runs) shade(plot, start, end, FILLS.flag);
          for (const [start, end, severity] of chart.gaps) shade(plot, start, end, FILLS[severity]);
        },
        draw: (plot) => {
          const { left, top, width, height } = plot.bbox;
          plot.ctx.fillStyle = "#c4261d";
          for (const [at, value] of chart.outliers) {
            const x = plot.valToPos(at, "x", true);
            const y = plot.valToPos(value, "y", true);
            if (x < left || x > left + width || y < top || y > top + height) continue;
            plot.ctx.beginPath();
            plot.ctx.arc(x, y, 3 * devicePixelRatio, 0, 2 * Math.PI);
            plot.ctx.fill();
          }
        },
      },
    };
  }

  function draw(element) {
    const chart = charts[element.dataset.series];
    const line = { points: { size: 4 }, value: (_, value) => shown(value) };
    const edge = { ...line, stroke: "rgba(42, 111, 176, 0.4)", width: 0.5, points: { show: false } };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        cursor: { sync: { key: chart.sync }, y: false },
        axes: [{ values: LABELS }, { label: chart.unit || "value", labelSize: 20, size: 64 }],
        series: [
          { label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" },
          { ...line, label: "mean", stroke: "#2a6fb0", width: 1.2 },
          { ...edge, label: "min" },
          { ...edge, label: "max" },
        ],
        bands: [{ series: [3, 2], fill: "rgba(42, 111, 176, 0.16)" }],
        plugins: [marks(chart)],
      },
      chart.line,
      element,
    );
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `Chart of ${chart.name}`);
    element.classList.add("drawn");
    drawn.set(element, plot);
  }

  const visible = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting && !drawn.has(target)) draw(target);
    },
    { rootMargin: "300px" },
  );
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) drawn.get(target)?.setSize({ width: target.clientWidth, height: HEIGHT });
  });
  for (const element of document.querySelectorAll(".chart")) {
    visible.observe(element);
    sized.observe(element);
  }
}
