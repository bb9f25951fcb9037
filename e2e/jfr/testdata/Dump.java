// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedMethod;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/** Sums the samples of recordings, read by the JDK's own parser: a line for each kind, thread, state and stack. */
public class Dump {
    static String kind;
    static long first, second;

    public static void main(String[] files) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String file : files) {
            out.println("file\t" + file);
            Map<String, long[]> sums = new TreeMap<>();
            try (RecordingFile recording = new RecordingFile(Path.of(file))) {
                while (recording.hasMoreEvents()) {
                    RecordedEvent e = recording.readEvent();
                    if (!measure(e)) continue;
                    long[] sum = sums.computeIfAbsent(kind + "\t" + thread(e) + "\t" + state(e) + "\t" + stack(e), k -> new long[2]);
                    sum[0] += first;
                    sum[1] += second;
                }
            } catch (Throwable t) {
                out.println("error\t" + t);
                continue;
            }
            sums.forEach((key, sum) -> out.println("sum\t" + sum[0] + "\t" + sum[1] + "\t" + key));
        }
        out.flush();
    }

    static boolean measure(RecordedEvent e) {
        first = 1;
        second = 0;
        switch (e.getEventType().getName()) {
            case "jdk.ExecutionSample", "jdk.NativeMethodSample" -> kind = "samples";
            case "profiler.WallClockSample" -> { kind = "samples"; first = e.getInt("samples"); }
            case "jdk.ObjectAllocationInNewTLAB" -> { kind = "alloc_in_new_tlab_objects"; second = e.getLong("tlabSize"); }
            case "jdk.ObjectAllocationOutsideTLAB" -> { kind = "alloc_outside_tlab_objects"; second = e.getLong("allocationSize"); }
            case "jdk.ObjectAllocationSample" -> { kind = "alloc_sample_objects"; second = e.getLong("weight"); }
            case "profiler.LiveObject" -> { kind = "live_objects"; second = e.getLong("allocationSize"); }
            case "profiler.Malloc" -> { kind = "malloc_objects"; second = e.getLong("size"); }
            case "jdk.JavaMonitorEnter" -> { kind = "mutex contentions"; second = e.getDuration().toNanos(); }
            case "jdk.JavaMonitorWait", "jdk.ThreadPark" -> { kind = "block contentions"; second = e.getDuration().toNanos(); }
            case "jdk.ThreadSleep", "jdk.SocketRead", "jdk.SocketWrite", "jdk.FileRead", "jdk.FileWrite", "jdk.FileForce" -> { kind = "events"; second = e.getDuration().toNanos(); }
            default -> { return false; }
        }
        return true;
    }

    static String thread(RecordedEvent e) {
        RecordedThread t = e.hasField("sampledThread") ? e.getThread("sampledThread") : e.getThread();
        if (t == null) return "\t0";
        String name = t.getJavaName() == null || t.getJavaName().isEmpty() ? t.getOSName() : t.getJavaName();
        long id = t.getJavaThreadId() > 0 ? t.getJavaThreadId() : t.getOSThreadId();
        return (name == null ? "" : name) + "\t" + Math.max(id, 0);
    }

    static String state(RecordedEvent e) {
        String state = e.hasField("state") ? e.getString("state") : null;
        return state == null ? "" : state;
    }

    static String stack(RecordedEvent e) {
        if (e.getStackTrace() == null) return "";
        StringBuilder b = new StringBuilder();
        for (RecordedFrame f : e.getStackTrace().getFrames()) {
            if (b.length() > 0) b.append(';');
            RecordedMethod m = f.getMethod();
            String of = m.getType() == null ? "" : m.getType().getName();
            if (!of.isEmpty()) b.append(of).append('.');
            b.append(m.getName());
            if (!m.getDescriptor().equals("()L;") && !of.isEmpty()) b.append(m.getDescriptor());
            b.append(':').append(Math.max(f.getLineNumber(), 0));
        }
        return b.toString().replace('/', '.');
    }
}
