-- expect: states 16, fired 32, depth 7, reduced 16
var x: 0..3; i: 0..3;
startstate begin x := 0; i := 2; end;
rule begin for i: 0..1 do x := (x + i) % 4; end; i := (i + 1) % 4; endrule;
rule var x: 0..3; begin x := 1; i := x; endrule;
