import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.SynchronousQueue;

/**
 * Runs client programs on the collections of java.util.concurrent, many times each, and counts
 * the outcomes.
 *
 * <p>A line of standard input is a program:
 *
 * <pre>COLLECTION CLOCK ROUNDS MILLIS SEED | CALL ... | CALL ...</pre>
 *
 * Each list of calls belongs to one thread. CLOCK is {@code counters} or {@code plain}. The program
 * ends after ROUNDS rounds, each with a new collection, or when MILLIS have passed. The answer has
 * one line per distinct outcome, and a last line:
 *
 * <pre>
 * o COUNT RETURN@BEFORE RETURN@BEFORE ...
 * d ROUNDS
 * </pre>
 *
 * There is a RETURN for each call, thread by thread; {@code !NAME} is an exception. BEFORE lists,
 * separated by commas, for each thread the number of its calls that had returned before this call.
 * {@code e MESSAGE} is the answer to a line that is not a program.
 *
 * <p>A round starts when all threads have arrived at a barrier; each thread then waits for a random
 * time. Each thread counts its returned calls, and reads the counters of the other threads before
 * each call. Counters are written with release and read with acquire, so a call that was read as
 * returned has returned. Common processors need no fence for this; a fence would hide the races.
 */
public final class Clients {
    private static final VarHandle LONGS = MethodHandles.arrayElementVarHandle(long[].class);
    /** How far apart counters are, so that no two are in one cache line. */
    private static final int APART = 16;
    /** How many rounds are run before their outcomes are counted. */
    private static final int BATCH = 256;
    /** How many turns of a loop a thread may wait before it starts; a batch takes one of them. */
    private static final int[] WAITS = {1, 8, 32, 128};

    /** A call of a program. */
    private static final class Call {
        final Methods.Body body;
        final Object[] args;

        Call(Methods.Body body, Object[] args) {
            this.body = body;
            this.args = args;
        }

        Object on(Object collection) {
            try {
                return body.call(collection, args);
            } catch (Throwable thrown) {
                return new Thrown(thrown.getClass().getSimpleName());
            }
        }
    }

    /** What a call returns that throws. */
    private static final class Thrown {
        final String name;

        Thrown(String name) {
            this.name = name;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Thrown && ((Thrown) other).name.equals(name);
        }

        @Override
        public int hashCode() {
            return name.hashCode();
        }

        @Override
        public String toString() {
            return "!" + name;
        }
    }

    /** What a line asks for. */
    private static final class Program {
        Methods.Kind kind;
        boolean isPlain;
        long rounds;
        long millis;
        long seed;
        final List<Call[]> threads = new ArrayList<>();
    }

    /** A thread's share of a batch: what its calls returned, and the times at which they ran. */
    private static final class Share {
        final Object[] returns;
        /** With counters: before each call, the counters of all. With a clock: starts and ends. */
        final long[] seen;

        Share(int calls, int threads) {
            returns = new Object[BATCH * calls];
            seen = new long[BATCH * calls * Math.max(threads, 2)];
        }
    }

    /** Some rounds of a program. */
    private static final class Batch {
        final Program program;
        final int threads;
        final Object[] collections = new Object[BATCH];
        final Share[] shares;
        /** For each thread how often it has arrived at the barrier. */
        final long[] arrived;
        /** For each thread how many of its calls have returned. */
        final long[] counters;
        final int patience;
        int rounds;
        int wait;
        long seed;

        Batch(Program program) {
            this.program = program;
            threads = program.threads.size();
            shares = new Share[threads];
            for (int thread = 0; thread < threads; thread++) {
                shares[thread] = new Share(program.threads.get(thread).length, threads);
            }
            arrived = new long[(threads + 1) * APART];
            counters = new long[(threads + 1) * APART];
            // If there are more threads than cores, another thread needs this thread's core.
            patience = threads <= Runtime.getRuntime().availableProcessors() ? 500 : 20;
        }

        void run(int thread) {
            Call[] calls = program.threads.get(thread);
            Share share = shares[thread];
            int own = (thread + 1) * APART;
            long random = seed + thread * 0x9E3779B97F4A7C15L | 1;
            long done = (long) LONGS.getAcquire(counters, own);
            for (int round = 0; round < rounds; round++) {
                arrive(thread);
                Object collection = collections[round];
                random ^= random << 13;
                random ^= random >>> 7;
                random ^= random << 17;
                for (int turns = (int) (random >>> 32 & wait - 1); turns > 0; turns--) {
                    Thread.onSpinWait();
                }
                int at = round * calls.length;
                if (program.isPlain) {
                    for (int i = 0; i < calls.length; i++, at++) {
                        share.seen[2 * at] = System.nanoTime();
                        Object found = calls[i].on(collection);
                        share.seen[2 * at + 1] = System.nanoTime();
                        share.returns[at] = found;
                    }
                    continue;
                }
                for (int i = 0; i < calls.length; i++, at++) {
                    for (int other = 0; other < threads; other++) {
                        share.seen[threads * at + other] =
                                (long) LONGS.getAcquire(counters, (other + 1) * APART);
                    }
                    Object found = calls[i].on(collection);
                    LONGS.setRelease(counters, own, ++done);
                    share.returns[at] = found;
                }
            }
            arrive(thread);
        }

        /** Waits until all have arrived as often as this thread. */
        private void arrive(int thread) {
            int own = (thread + 1) * APART;
            long mine = (long) LONGS.getAcquire(arrived, own) + 1;
            LONGS.setRelease(arrived, own, mine);
            for (int other = 0; other < threads; other++) {
                int turns = 0;
                while ((long) LONGS.getAcquire(arrived, (other + 1) * APART) < mine) {
                    if (++turns % patience == 0) {
                        Thread.yield();
                    } else {
                        Thread.onSpinWait();
                    }
                }
            }
        }

        /** Adds what came out. */
        void count(Map<List<Object>, long[]> outcomes, long roundsBefore) {
            for (int round = 0; round < rounds; round++) {
                List<Object> outcome = new ArrayList<>();
                for (int thread = 0; thread < threads; thread++) {
                    int calls = program.threads.get(thread).length;
                    for (int i = 0; i < calls; i++) {
                        int at = round * calls + i;
                        outcome.add(shares[thread].returns[at]);
                        for (int other = 0; other < threads; other++) {
                            outcome.add(other == thread ? i
                                    : before(thread, at, other, round, roundsBefore + round));
                        }
                    }
                }
                outcomes.computeIfAbsent(outcome, o -> new long[1])[0]++;
            }
        }

        /** Counts the calls of another thread that had returned before a call. */
        private int before(int thread, int at, int other, int round, long roundsBefore) {
            int calls = program.threads.get(other).length;
            if (!program.isPlain) {
                return (int) (shares[thread].seen[threads * at + other] - roundsBefore * calls);
            }
            int count = 0;
            long start = shares[thread].seen[2 * at];
            while (count < calls && shares[other].seen[2 * (round * calls + count) + 1] < start) {
                count++;
            }
            return count;
        }
    }

    /** A thread that waits for batches. */
    private static final class Worker extends Thread {
        final int number;
        final SynchronousQueue<Batch> batches = new SynchronousQueue<>();
        final SynchronousQueue<Batch> done = new SynchronousQueue<>();

        Worker(int number) {
            super("client-" + number);
            this.number = number;
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            try {
                while (true) {
                    Batch batch = batches.take();
                    batch.run(number);
                    done.put(batch);
                }
            } catch (InterruptedException stopped) {
                // Worker threads are never interrupted; the process ends with its input.
            }
        }
    }

    private static final List<Worker> WORKERS = new ArrayList<>();

    public static void main(String[] args) throws IOException, InterruptedException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                Program program = new Reader(line).program();
                run(program, out);
            } catch (IllegalArgumentException wrong) {
                out.print("e " + wrong.getMessage() + "\n");
            }
            out.flush();
        }
    }

    private static void run(Program program, PrintStream out) throws InterruptedException {
        int threads = program.threads.size();
        while (WORKERS.size() < threads) {
            WORKERS.add(new Worker(WORKERS.size()));
        }
        Map<List<Object>, long[]> outcomes = new HashMap<>();
        Batch batch = new Batch(program);
        long started = System.nanoTime();
        long rounds = 0;
        for (int number = 0; rounds < program.rounds; number++) {
            if (System.nanoTime() - started > program.millis * 1_000_000) {
                break;
            }
            batch.rounds = (int) Math.min(BATCH, program.rounds - rounds);
            batch.wait = WAITS[number % WAITS.length];
            batch.seed = program.seed + number;
            for (int round = 0; round < batch.rounds; round++) {
                batch.collections[round] = program.kind.make.get();
            }
            for (int thread = 0; thread < threads; thread++) {
                WORKERS.get(thread).batches.put(batch);
            }
            for (int thread = 0; thread < threads; thread++) {
                WORKERS.get(thread).done.take();
            }
            batch.count(outcomes, rounds);
            rounds += batch.rounds;
        }
        StringBuilder text = new StringBuilder();
        for (Map.Entry<List<Object>, long[]> entry : outcomes.entrySet()) {
            text.append("o ").append(entry.getValue()[0]);
            List<Object> outcome = entry.getKey();
            for (int at = 0; at < outcome.size(); at += threads + 1) {
                text.append(' ');
                show(outcome.get(at), text);
                for (int other = 0; other < threads; other++) {
                    text.append(other == 0 ? '@' : ',').append(outcome.get(at + 1 + other));
                }
            }
            text.append('\n');
        }
        out.print(text.append("d ").append(rounds).append('\n'));
    }

    private static void show(Object value, StringBuilder text) {
        if (!(value instanceof List)) {
            text.append(value);
            return;
        }
        text.append('[');
        String separator = "";
        for (Object element : (List<?>) value) {
            text.append(separator);
            show(element, text);
            separator = ",";
        }
        text.append(']');
    }

    /** Reads a line. */
    private static final class Reader {
        final String line;
        int at = 0;

        Reader(String line) {
            this.line = line;
        }

        Program program() {
            Program program = new Program();
            String kind = word();
            program.kind = Methods.KINDS.get(kind);
            if (program.kind == null) {
                throw new IllegalArgumentException("there is no collection " + kind);
            }
            program.isPlain = word().equals("plain");
            program.rounds = Long.parseLong(word());
            program.millis = Long.parseLong(word());
            program.seed = Long.parseLong(word());
            while (at < line.length()) {
                program.threads.add(calls(program.kind));
            }
            return program;
        }

        private Call[] calls(Methods.Kind kind) {
            expect("|");
            List<Call> calls = new ArrayList<>();
            for (skip(); at < line.length() && line.charAt(at) != '|'; skip()) {
                String name = word();
                expect("(");
                Object[] args = values(")");
                Methods.Body body = kind.methods.get(name + "/" + args.length);
                if (body == null) {
                    String what = name + " with " + args.length + " arguments";
                    throw new IllegalArgumentException("there is no method " + what);
                }
                calls.add(new Call(body, args));
            }
            return calls.toArray(new Call[0]);
        }

        private Object[] values(String close) {
            List<Object> values = new ArrayList<>();
            while (!line.startsWith(close, at)) {
                values.add(value());
                if (!line.startsWith(close, at)) {
                    expect(",");
                }
            }
            expect(close);
            return values.toArray();
        }

        private Object value() {
            if (line.startsWith("[", at)) {
                at++;
                return Arrays.asList(values("]"));
            }
            String word = word();
            switch (word) {
                case "null":
                    return null;
                case "true":
                    return true;
                case "false":
                    return false;
                default:
                    return Integer.valueOf(word);
            }
        }

        private String word() {
            skip();
            int from = at;
            while (at < line.length() && " |()[],".indexOf(line.charAt(at)) < 0) {
                at++;
            }
            return line.substring(from, at);
        }

        private void expect(String text) {
            skip();
            if (!line.startsWith(text, at)) {
                throw new IllegalArgumentException("expected " + text + " at column " + (at + 1));
            }
            at += text.length();
        }

        private void skip() {
            while (at < line.length() && line.charAt(at) == ' ') {
                at++;
            }
        }
    }
}
