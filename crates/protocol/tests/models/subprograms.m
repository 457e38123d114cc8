-- expect: states 16, fired 96, depth 6, reduced 16
-- Procedures, functions, var parameters, records returned and passed, arguments without an address.
type Bit: 0..1; Pair: record left, right: Bit; end;
var p, q: Pair; n: 0..3;
function swapped(a: Pair): Pair;
var r: Pair;
begin
  r.left := a.right;
  r.right := a.left;
  return r;
end;
function count(a: Pair; b: Pair): 0..4;
begin
  return a.left + a.right + b.left + b.right;
end;
procedure set(var a: Pair; v: Bit; w: Bit);
begin
  if v = 1 then a.left := w; return; end;
  a.right := w;
end;
startstate begin set(p, 0, 0); set(p, 1, 0); q := p; n := 0; end;
ruleset v: Bit; w: Bit do
  rule "set" begin set(p, v, w); n := count(swapped(p), swapped(q)) % 4; end;
end;
rule "swap" begin q := swapped(p); n := count(p, q) % 4; end;
rule "both" begin p := swapped(swapped(q)); n := count(p, q) % 4; end;
invariant "counted" n <= 3;
