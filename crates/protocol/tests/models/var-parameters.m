-- expect: states 4096, fired 9216, depth 22, reduced 4096
type R: record a, b: 0..3; end;
var g: R; h: array [0..1] of R;
procedure swap(var x: R; var y: R); var t: R; begin t := x; x := y; y := t; end;
procedure inc(var v: 0..3); begin v := (v + 1) % 4; end;
-- both names are the same variable
procedure both(var v: 0..3; var w: 0..3); begin v := 1; w := w + 1; end;
startstate begin g.a := 0; g.b := 0; h[0] := g; h[1] := g; end;
rule begin inc(g.a); swap(g, h[0]); endrule;
rule begin inc(h[1].b); swap(h[0], h[1]); endrule;
rule "same" g.a = 2 ==> begin both(g.a, g.a); endrule;
