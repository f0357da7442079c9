package kafkalite.suite;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.HashSet;
import java.util.Set;

/** Free ports of loopback. A broker keeps its own over restarts. */
final class Ports {
    private static final Set<Integer> GIVEN = new HashSet<>();

    private Ports() {
    }

    static synchronized int free() {
        try {
            while (true) {
                try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                    if (GIVEN.add(socket.getLocalPort())) {
                        return socket.getLocalPort();
                    }
                }
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
