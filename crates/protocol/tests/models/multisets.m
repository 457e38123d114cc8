-- expect: states 170, fired 620, depth 18, reduced 90
-- A network without order: choose, add, remove, count, remove by condition.
type Proc: scalarset(2); Kind: enum { Ask, Answer };
  Message: record kind: Kind; dest: Proc; end;
var net: multiset [3] of Message; waits: array [Proc] of boolean; done: 0..1;
procedure send(kind: Kind; dest: Proc);
var m: Message;
begin m.kind := kind; m.dest := dest; multisetadd(m, net); end;
startstate for p: Proc do waits[p] := false; end; undefine net; done := 0; end;
ruleset p: Proc do
  rule "ask" !waits[p] & multisetcount(i: net, true) < 3 ==> send(Ask, p); waits[p] := true; end;
end;
choose m: net do
  alias message: net[m] do
    rule "answer" message.kind = Ask ==>
      message.kind := Answer;
    end;
    rule "get" message.kind = Answer ==>
      waits[message.dest] := false;
      multisetremove(m, net);
    end;
    rule "twice" message.kind = Answer & multisetcount(i: net, net[i].dest = message.dest) < 2
        & multisetcount(i: net, true) < 3 ==>
      multisetadd(net[m], net);
    end;
  end;
end;
rule "lose" multisetcount(i: net, net[i].kind = Answer) > 1 ==>
  multisetremovepred(i: net, net[i].kind = Answer);
  for p: Proc do if multisetcount(i: net, net[i].dest = p) = 0 then waits[p] := false; end; end;
  done := 1 - done;
end;
