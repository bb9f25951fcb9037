// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;
public class Load {
    static final Object monitor = new Object();
    static volatile Object sink;
    static volatile long sum;
    static long spin(int n) { long s = 0; for (int i = 0; i < n; i++) s += Math.sin(i) * 1000; return s; }
    static void allocate() { for (int i = 0; i < 2000; i++) sink = new byte[1024 + i]; sink = new byte[8 << 20]; }
    static void hold() { synchronized (monitor) { try { Thread.sleep(25); } catch (InterruptedException e) {} } }
    static void await() { synchronized (monitor) { try { monitor.wait(30); } catch (InterruptedException e) {} } }
    static void park() { LockSupport.parkNanos(30_000_000); }
    static void write() { // waits for the disk
        try (FileChannel file = FileChannel.open(Files.createTempFile("load", ""), StandardOpenOption.WRITE, StandardOpenOption.DELETE_ON_CLOSE)) {
            file.write(ByteBuffer.allocate(1 << 16));
            file.force(true);
        } catch (IOException e) { throw new UncheckedIOException(e); }
    }
    static void read() { // waits for the other end of a connection
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
             Socket client = new Socket(server.getInetAddress(), server.getLocalPort()); Socket other = server.accept()) {
            client.setSoTimeout(30);
            client.getInputStream().read();
        } catch (SocketTimeoutException e) {
        } catch (IOException e) { throw new UncheckedIOException(e); }
    }
    static int deep(int n) {
        if (n == 0) { sum += spin(20000); sink = new int[4096]; throw new IllegalStateException("deep"); }
        try { return deep(n - 1) + 1; } catch (IllegalStateException e) { if (n % 100 == 0) throw e; throw new IllegalStateException(e.getMessage()); }
    }
    static void fail() { try { deep(600); } catch (IllegalStateException e) { sink = e; } }
    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        Runnable[] work = { () -> sum += spin(100000), Load::allocate, Load::hold, Load::hold, Load::park, Load::await, Load::fail, Load::write, Load::read };
        Thread[] threads = new Thread[work.length];
        for (int i = 0; i < work.length; i++) { final Runnable r = work[i]; threads[i] = new Thread(() -> { for (int n = 0; n < 20 || System.nanoTime() < end; n++) r.run(); }, "l\u00e4dt-" + i); threads[i].start(); }
        Thread.sleep(Long.parseLong(args[0]) / 2);
        try (Recording other = new Recording()) { other.start(); } // which starts another chunk
        for (Thread t : threads) t.join();
    }
}
