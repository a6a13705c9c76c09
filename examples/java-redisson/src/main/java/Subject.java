import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.jar.Manifest;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * Redisson's RLock with a lease around HGET, compare, HINCRBY -q, as a subject of stockproof:
 * docs/subject-protocol.md. Redisson's own retries are what they are by default.
 */
public final class Subject {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long LEASE = milliseconds("STOCKPROOF_LEASE_MS", 10_000);
  private static final long WAIT = milliseconds("STOCKPROOF_WAIT_MS", 1_000);

  private final RedissonClient redisson;

  private Subject(RedissonClient redisson) {
    this.redisson = redisson;
  }

  public static void main(String[] args) throws Exception {
    // Nobody else may write there: what a library prints goes to standard error.
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);

    Config config = new Config();
    String url = System.getenv("REDIS_URL");
    config.useSingleServer()
        .setAddress(url.substring(0, url.lastIndexOf('/'))) // the database is 0
        .setConnectionMinimumIdleSize(1)
        .setSubscriptionConnectionMinimumIdleSize(1);
    config.setThreads(2).setNettyThreads(2);
    RedissonClient redisson = Redisson.create(config);
    try {
      new Subject(redisson).serve(out);
    } finally {
      redisson.shutdown();
    }
  }

  private void serve(PrintStream out) throws Exception {
    redisson.getKeys().count(); // the hello says that we are ready
    ObjectNode hello = JSON.createObjectNode();
    hello.put("protocol", "stockproof/subject/v1").put("name", "redisson-rlock").put("version", version());
    hello.putArray("stores").add("redis");
    hello.putArray("operations").add("deduct").add("restock").add("read");
    hello.putObject("stock").put("key", "goods:{sku}").put("field", "stock");
    hello.putArray("leases").add("lock:{sku}");
    out.println(JSON.writeValueAsString(hello));

    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode request = JSON.readTree(line);
      ObjectNode answer = JSON.createObjectNode();
      answer.put("id", request.get("id").asLong());
      try {
        answer(request, answer);
      } catch (Exception e) { // in doubt it is unknown; a read changes nothing
        answer.remove("value");
        answer.put("outcome", request.get("op").asText().equals("read") ? "failed" : "unknown");
        answer.put("error", String.valueOf(e));
      }
      out.println(JSON.writeValueAsString(answer));
    }
  }

  private void answer(JsonNode request, ObjectNode answer) throws Exception {
    String sku = request.get("sku").asText();
    long qty = request.get("qty").asLong();
    RMap<String, String> goods = redisson.getMap("goods:" + sku, StringCodec.INSTANCE);
    switch (request.get("op").asText()) {
      case "deduct" -> answer.put("outcome", qty < 1 ? "failed" : deduct(goods, sku, qty));
      case "restock" -> {
        if (qty >= 1) {
          goods.addAndGet("stock", qty);
        }
        answer.put("outcome", qty < 1 ? "failed" : "ok");
      }
      case "read" -> answer.put("value", Long.parseLong(goods.get("stock"))).put("outcome", "value");
      default -> answer.put("outcome", "failed").put("error", "no such operation");
    }
  }

  private String deduct(RMap<String, String> goods, String sku, long qty) throws InterruptedException {
    RLock lock = redisson.getLock("lock:" + sku);
    if (!lock.tryLock(WAIT, LEASE, TimeUnit.MILLISECONDS)) {
      return "busy";
    }
    try {
      if (Long.parseLong(goods.get("stock")) < qty) {
        return "sold_out";
      }
      goods.addAndGet("stock", -qty);
      return "sold";
    } finally {
      try {
        lock.unlock();
      } catch (RuntimeException e) { // what the buyer was promised does not change
        System.err.println("unlock: " + e);
      }
    }
  }

  private static long milliseconds(String name, long published) {
    String set = System.getenv(name);
    return set == null ? published : Long.parseLong(set);
  }

  /** The version of Redisson that pom.xml names; the build writes it into the jar. */
  private static String version() throws Exception {
    try (InputStream in = Subject.class.getResourceAsStream("/META-INF/MANIFEST.MF")) {
      return new Manifest(in).getMainAttributes().getValue("Redisson-Version");
    }
  }
}
