"""How the page looks, on a light and on a dark screen and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d9dee5; --back: #fff;
  --card: #f5f7fa; --bar: #0072b2; --wide: #9cc7e0; --no: #b3261e; --maybe: #8a6100;
  --yes: #1d6b3a }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --soft: #a3adba; --line: #39424e;
  --back: #14181d; --card: #1d232a; --bar: #4aa3d8; --wide: #2c5a78; --no: #ff8a80;
  --maybe: #e3b341; --yes: #6fcf97 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: var(--back);
  color: var(--ink);  font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 1.8rem 0 .4rem }
p { margin: .3rem 0 } .soft, caption, th { color: var(--soft) } .soft { font-size: .9em }
dl { background: var(--card); border-radius: .5rem; padding: .8rem 1rem; margin: 1rem 0;
  display: grid; grid-template-columns: 12rem 1fr; gap: .35rem 1rem }
dt { color: var(--soft) } dd { margin: 0 }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .92em }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top } th { font-weight: 500 }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
th.n { white-space: normal } td:first-child { min-width: 5.5rem }
.unsupported, .no { color: var(--no); font-weight: 600 }
.unknown, .maybe { color: var(--maybe); font-weight: 600 } .yes { color: var(--yes) }
td svg { display: block; margin-top: .25rem } .span { fill: var(--wide) } .mark { fill: var(--bar) }
sup a { text-decoration: none; color: var(--soft); font-size: .85em } code { font-size: .95em }
summary { cursor: pointer; color: var(--soft); margin-top: .4rem } li { margin: .15rem 0 }
@media print { body { font-size: 11px; max-width: none; padding: 0 }
  details > * { display: block } }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr } }
"""
