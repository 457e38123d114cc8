-- expect: states 16, fired 16, depth 16, reduced 16
var n: 0..100; q: array[0..3] of 0..3;
startstate begin n := 7; for i := 0 to 3 do q[i] := i; end; end;
rule "collatz" n > 1 ==> var k: 0..100; begin k := 0; while n > 1 & k < 2 do if n % 2 = 0 then n := n / 2; else n := 3 * n + 1; endif; k := k + 1; endwhile; endrule;
rule "shift" n = 1 ==> var t: 0..3; begin t := q[0]; for i := 0 to 2 by 1 do q[i] := q[i+1]; endfor; q[3] := t; for i := 3 to 1 by -2 do q[i] := (q[i] + 1) % 4; endfor; endrule;
