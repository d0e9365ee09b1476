#include "planner/base/paper/style.h"

namespace planwright {

// The page's style sheet. Colors are variables, once for light and once for dark:
//   m0, m0b, m0l   of the first module: a fill behind text, a stronger fill, a line. Modules take m0 to m5 in turn.
//   c0 to c5       of memory categories, in the order of kMemoryCategories: weights and their state blue, the rest not.
//   soft, band, axis, limit, worst: by use.
const char kPageStyle[] = R"css(
:root {
  color-scheme: light dark;
  --surface: #fcfcfb; --card: #ffffff; --ink: #14140f; --soft: #5b5a55;
  --line: #dedcd3; --band: #f1f0ea; --limit: #c8322f;
  --m0: #d3e5fb; --m0b: #8dbbf1; --m0l: #2a78d6;
  --m1: #ccefdf; --m1b: #83d2b2; --m1l: #12855a;
  --m2: #fbe6b8; --m2b: #efbf57; --m2l: #a86f00;
  --m3: #e0dbf9; --m3b: #b0a6ec; --m3l: #4a3aa7;
  --m4: #fbd8d6; --m4b: #efa19e; --m4l: #c8322f;
  --m5: #d2ebcf; --m5b: #92cb8b; --m5l: #2a7a22;
  --c0: #8fb4dc; --c1: #b4cfec; --c2: #d8e6f6; --c3: #f0b97d; --c4: #9fd3c4; --c5: #c9c6bb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --surface: #161615; --card: #1e1e1c; --ink: #f3f2ee; --soft: #b4b2aa;
    --line: #3a3935; --band: #262623; --limit: #f07a76;
    --m0: #1b3f6b; --m0b: #2c66ac; --m0l: #6aa8f0;
    --m1: #12503a; --m1b: #197855; --m1l: #3cc492;
    --m2: #584009; --m2b: #866109; --m2l: #e0a93a;
    --m3: #3a3272; --m3b: #5b50ac; --m3l: #a69bf2;
    --m4: #682725; --m4b: #9c3d3a; --m4l: #f08a86;
    --m5: #1d4a1a; --m5b: #2c7327; --m5l: #74c46b;
    --c0: #2f5f95; --c1: #244a75; --c2: #1b3553; --c3: #8a5216; --c4: #1d6353; --c5: #55534c;
  }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 24px; background: var(--surface); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1120px; margin: 0 auto; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 0 0 10px; }
h3 { font-size: 15px; margin: 18px 0 6px; }
p { margin: 4px 0 10px; }
section {
  background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 16px 20px; margin: 18px 0;
}
nav a { color: var(--soft); margin-right: 14px; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.drawing { overflow-x: auto; margin: 10px 0; }
.chart { display: flex; }
.chart .drawing:first-child { flex: none; }
.chart .drawing:last-child { flex: 1; min-width: 0; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px 34px; margin: 4px 0 14px; }
.tiles div { min-width: 90px; }
.tiles b { display: block; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: 13px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 500; }
th, td { padding: 4px 18px 4px 0; border-bottom: 1px solid var(--line); vertical-align: middle; white-space: nowrap; }
th.number, td.number { text-align: right; }
details { margin: 8px 0; }
summary { cursor: pointer; color: var(--soft); }
.chip { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
.chip.worst { background: transparent; border: 1px dashed var(--soft); }
.chip.limit { background: transparent; border: 0; border-left: 2px dashed var(--limit); width: 6px; border-radius: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 13px; }
svg { display: block; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
svg text.strong { font-weight: 600; }
svg text.soft { fill: var(--soft); }
svg text.small { font-size: 10.5px; }
svg text.mid { text-anchor: middle; }
svg text.end { text-anchor: end; }
svg .axis { stroke: var(--line); stroke-width: 1; }
svg .limit { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 5 3; }
svg .worst { fill: transparent; stroke: var(--soft); stroke-dasharray: 4 3; }
svg text.over { fill: var(--limit); font-weight: 600; }
svg .band { fill: var(--band); }
svg .none { fill: transparent; }
svg .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .wire { fill: none; stroke-width: 1.2; opacity: .75; }
svg .wire:hover { opacity: 1; stroke-width: 3; }
svg .probe:hover { fill: var(--ink); fill-opacity: .12; }
svg .rank:hover rect, svg .op:hover rect, svg rect.op:hover { stroke: var(--ink); stroke-width: 1.5; }
.m0 { fill: var(--m0); background: var(--m0); } .m0b { fill: var(--m0b); background: var(--m0b); }
.m0l { stroke: var(--m0l); }
.m1 { fill: var(--m1); background: var(--m1); } .m1b { fill: var(--m1b); background: var(--m1b); }
.m1l { stroke: var(--m1l); }
.m2 { fill: var(--m2); background: var(--m2); } .m2b { fill: var(--m2b); background: var(--m2b); }
.m2l { stroke: var(--m2l); }
.m3 { fill: var(--m3); background: var(--m3); } .m3b { fill: var(--m3b); background: var(--m3b); }
.m3l { stroke: var(--m3l); }
.m4 { fill: var(--m4); background: var(--m4); } .m4b { fill: var(--m4b); background: var(--m4b); }
.m4l { stroke: var(--m4l); }
.m5 { fill: var(--m5); background: var(--m5); } .m5b { fill: var(--m5b); background: var(--m5b); }
.m5l { stroke: var(--m5l); }
.c0 { fill: var(--c0); background: var(--c0); } .c1 { fill: var(--c1); background: var(--c1); }
.c2 { fill: var(--c2); background: var(--c2); }
.c3 { fill: var(--c3); background: var(--c3); } .c4 { fill: var(--c4); background: var(--c4); }
.c5 { fill: var(--c5); background: var(--c5); }
@media print { section { break-inside: avoid; } body { padding: 0; } }
)css";

}  // namespace planwright
