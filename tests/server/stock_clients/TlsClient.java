import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import org.apache.iotdb.isession.SessionDataSet;
import org.apache.iotdb.session.Session;
import org.apache.iotdb.session.pool.SessionPool;

/** Uses a server with TLS; prints a line for each step. Arguments: port, user, password, trust store, its password. */
public class TlsClient {
  static void step(String name, Callable<Object> run) {
    String result;
    try {
      result = String.valueOf(run.call());
    } catch (Throwable error) {
      result = "fails";
      for (Throwable cause = error; cause != null; cause = cause.getCause()) {
        if (String.valueOf(cause.getMessage()).contains("this port takes TLS only")) {
          result = "TLS only";
        }
      }
    }
    System.out.println(name + " | " + result);
  }

  static Object pool(String host, String[] arguments, boolean tls) throws Exception {
    SessionPool.Builder builder = new SessionPool.Builder()
        .host(host).port(Integer.parseInt(arguments[0])).user(arguments[1]).password(arguments[2]).maxSize(1)
        .maxRetryCount(1);
    if (tls) {
      builder = builder.useSSL(true).trustStore(arguments[3]).trustStorePwd(arguments[4]);
    }
    SessionPool pool = builder.build();
    try {
      pool.insertRecord("root.tls.pool", 1, Arrays.asList("s"), Arrays.asList("pool"));
      return pool.checkTimeseriesExists("root.tls.pool.s");
    } finally {
      pool.close();
    }
  }

  static Object session(String[] arguments) throws Exception {
    Session session = new Session.Builder()
        .host("127.0.0.1").port(Integer.parseInt(arguments[0])).username(arguments[1]).password(arguments[2])
        .useSSL(true).trustStore(arguments[3]).trustStorePwd(arguments[4]).build();
    session.open();
    try {
      SessionDataSet result = session.executeQueryStatement("select s from root.tls.pool");
      return result.next().toString().replace('\t', ' ');
    } finally {
      session.close();
    }
  }

  static Object jdbc(String[] arguments, boolean tls) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("user", arguments[1]);
    properties.setProperty("password", arguments[2]);
    if (tls) {
      properties.setProperty("use_ssl", "true");
      properties.setProperty("trust_store", arguments[3]);
      properties.setProperty("trust_store_pwd", arguments[4]);
    }
    String address = "jdbc:iotdb://127.0.0.1:" + arguments[0] + "/";
    try (Connection connection = DriverManager.getConnection(address, properties);
        Statement statement = connection.createStatement();
        ResultSet result = statement.executeQuery("select s from root.tls.pool")) {
      result.next();
      return result.getString(2);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Class.forName("org.apache.iotdb.jdbc.IoTDBDriver");
    step("pool", () -> pool("127.0.0.1", arguments, true));
    step("pool, another name than the certificate's", () -> pool("127.1", arguments, true));
    step("session", () -> session(arguments));
    step("jdbc", () -> jdbc(arguments, true));
    step("pool without TLS", () -> pool("127.0.0.1", arguments, false));
    step("jdbc without TLS", () -> jdbc(arguments, false));
    System.exit(0);
  }
}
