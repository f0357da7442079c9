package io.github.kafkalite.example;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.stereotype.Service;

/** An application as people have it: it takes orders by Kafka, and bills each once. */
@SpringBootApplication
public class OrdersApplication {

    /** Sends orders. */
    @Service
    public static class Shop {

        private final KafkaTemplate<String, String> kafka;

        Shop(KafkaTemplate<String, String> kafka) {
            this.kafka = kafka;
        }

        void order(String customer, String what) {
            kafka.send("orders", customer, what).join();
        }
    }

    /** Bills orders. */
    @Service
    public static class Billing {

        final List<String> bills = new CopyOnWriteArrayList<>();

        @KafkaListener(topics = "orders", groupId = "billing")
        void bill(String order) {
            bills.add(order);
        }
    }
}
