import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.Callable;

/** Uses a server through JDBC; prints a line for each step. Arguments: port, user, password. */
public class JdbcClient {
  static void step(String name, Callable<Object> run) {
    String result;
    try {
      result = String.valueOf(run.call());
    } catch (Throwable error) {
      result = error.getClass().getSimpleName() + ": " + String.valueOf(error.getMessage()).split("\n")[0];
    }
    System.out.println(name + " | " + result);
  }

  static Connection connect(String[] arguments, String zone) throws SQLException {
    Properties properties = new Properties();
    properties.setProperty("user", arguments[1]);
    properties.setProperty("password", arguments[2]);
    if (zone != null) {
      properties.setProperty("time_zone", zone);
    }
    return DriverManager.getConnection("jdbc:iotdb://127.0.0.1:" + arguments[0] + "/", properties);
  }

  static String rows(ResultSet result) throws SQLException {
    StringBuilder text = new StringBuilder();
    ResultSetMetaData columns = result.getMetaData();
    while (result.next()) {
      text.append('[');
      for (int column = 1; column <= columns.getColumnCount(); column++) {
        text.append(column == 1 ? "" : " ").append(result.getString(column));
      }
      text.append(']');
    }
    result.close();
    return text.toString();
  }

  static int count(ResultSet result) throws SQLException {
    int rows = 0;
    while (result.next()) {
      rows++;
    }
    result.close();
    return rows;
  }

  public static void main(String[] arguments) throws Exception {
    Class.forName("org.apache.iotdb.jdbc.IoTDBDriver");
    Connection connection = connect(arguments, "+00:00");
    Statement statement = connection.createStatement();
    DatabaseMetaData about = connection.getMetaData();
    step("valid", () -> connection.isValid(5));
    step("product", about::getDatabaseProductName);
    step("create database", () -> statement.execute("create database root.jdbc"));
    step("create timeseries", () -> statement.execute("create timeseries root.jdbc.d.l INT64"));
    step("insert", () -> statement.executeUpdate(
        "insert into root.jdbc.d(time, l, f, t, b) values (1, 4611686018427387904, 1.5, 'x', true), (2, null, 2.5, null, false)"));
    step("batch", () -> {
      statement.addBatch("insert into root.jdbc.d(time, l) values (3, 3)");
      statement.addBatch("insert into root.jdbc.d(time, l) values (4, 4)");
      statement.addBatch("insert into root.jdbc.d(time, l) values (5, 5)");
      return Arrays.toString(statement.executeBatch());
    });
    step("prepared insert", () -> {
      PreparedStatement prepared = connection.prepareStatement("insert into root.jdbc.d(time, l, t) values (?, ?, ?)");
      prepared.setLong(1, 6);
      prepared.setLong(2, 6);
      prepared.setString(3, "it");
      prepared.execute();
      prepared.close();
      return "done";
    });
    statement.setFetchSize(2);
    step("columns of a result", () -> {
      ResultSet result = statement.executeQuery("select l, f, t, b from root.jdbc.d");
      ResultSetMetaData columns = result.getMetaData();
      StringBuilder text = new StringBuilder();
      for (int column = 1; column <= columns.getColumnCount(); column++) {
        text.append(columns.getColumnName(column)).append(' ');
      }
      result.close();
      return text.toString().trim();
    });
    step("query", () -> rows(statement.executeQuery("select l, f, t, b from root.jdbc.d")));
    step("aggregate", () -> rows(statement.executeQuery("select count(l), sum(f) from root.jdbc.d")));
    step("last", () -> rows(statement.executeQuery("select last t from root.jdbc.d")));
    step("prepared query", () -> {
      PreparedStatement prepared = connection.prepareStatement("select l from root.jdbc.d where l > ?");
      prepared.setInt(1, 3);
      int found = count(prepared.executeQuery());
      prepared.close();
      return found;
    });
    step("show", () -> count(statement.executeQuery("show timeseries root.jdbc.**")));
    step("tables", () -> count(about.getTables(null, null, "%", null)));
    step("syntax", () -> statement.executeQuery("selec"));
    step("a value of another type", () -> statement.executeUpdate("insert into root.jdbc.d(time, l) values (9, 'x')"));
    step("two sessions in two zones", () -> {
      Connection other = connect(arguments, "+08:00");
      Statement elsewhere = other.createStatement();
      elsewhere.execute("insert into root.jdbc.z(time, i) values (1970-01-01T08:00:01, 1)");
      String found = rows(statement.executeQuery("select i from root.jdbc.z where time = 1970-01-01T00:00:01"));
      other.close();
      return found;
    });
    step("with a time-out", () -> {
      statement.setQueryTimeout(60);
      return count(statement.executeQuery("select l from root.jdbc.d"));
    });
    step("drop", () -> statement.execute("drop database root.jdbc"));
    statement.close();
    connection.close();
    step("no such user", () -> connect(new String[] {arguments[0], "nobody", "wrong"}, null));
    System.exit(0);
  }
}
