import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Prints the values that JDBC reads: statements from standard input, one a line. Argument: port.
 *
 * <p>For each statement: a refusal's code; or the columns with their types, and the class and value of each object, and
 * its text where that is another. Rows without times are sorted.
 */
public class JdbcValues {
  static String columns(ResultSetMetaData columns) throws SQLException {
    List<String> texts = new ArrayList<>();
    for (int column = 1; column <= columns.getColumnCount(); column++) {
      String name = columns.getColumnName(column);
      String label = columns.getColumnLabel(column);
      texts.add((name.equals(label) ? name : name + " as " + label)
          + " " + columns.getColumnTypeName(column) + " " + columns.getColumnType(column));
    }
    return String.join(", ", texts);
  }

  static String value(ResultSet result, int column) throws SQLException {
    Object object = result.getObject(column);
    String text = result.getString(column);
    if (object == null) {
      return text == null && result.wasNull() ? "null" : "null as " + text;
    }
    String value = object instanceof byte[] ? hex((byte[]) object) : object.toString();
    return (object.getClass().getSimpleName() + " " + value + (value.equals(text) ? "" : " as " + text))
        .replace("\0", "\\0").replace("\n", "\\n");
  }

  static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder("0x");
    for (byte one : bytes) {
      text.append(String.format("%02x", one));
    }
    return text.toString();
  }

  static List<String> rows(ResultSet result) throws SQLException {
    int width = result.getMetaData().getColumnCount();
    boolean timed = "Time".equals(result.getMetaData().getColumnName(1));
    List<String> rows = new ArrayList<>();
    while (result.next()) {
      List<String> values = new ArrayList<>();
      for (int column = 1; column <= width; column++) {
        values.add(value(result, column));
      }
      rows.add(String.join(", ", values));
    }
    if (!timed) {
      Collections.sort(rows);
    }
    return rows;
  }

  static void answer(Statement statement, String text) throws SQLException {
    if (!statement.execute(text)) {
      System.out.println("done " + statement.getUpdateCount());
      return;
    }
    try (ResultSet result = statement.getResultSet()) {
      System.out.println(columns(result.getMetaData()));
      rows(result).forEach(System.out::println);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Class.forName("org.apache.iotdb.jdbc.IoTDBDriver");
    String url = "jdbc:iotdb://127.0.0.1:" + arguments[0] + "/";
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (Connection connection = DriverManager.getConnection(url, "root", "root");
        Statement statement = connection.createStatement()) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        System.out.println("> " + line);
        try {
          answer(statement, line);
        } catch (SQLException error) {
          String code = String.valueOf(error.getMessage()).split(":")[0];
          System.out.println("refused " + error.getErrorCode() + " " + code);
        } catch (RuntimeException error) {
          System.out.println("failed " + error.getClass().getSimpleName());
        }
      }
    }
    System.exit(0);
  }
}
