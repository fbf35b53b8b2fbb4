import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.iotdb.common.rpc.thrift.TAggregationType;
import org.apache.iotdb.isession.pool.SessionDataSetWrapper;
import org.apache.iotdb.session.pool.SessionPool;
import org.apache.tsfile.enums.TSDataType;
import org.apache.tsfile.file.metadata.enums.TSEncoding;
import org.apache.tsfile.file.metadata.enums.CompressionType;
import org.apache.tsfile.write.record.Tablet;
import org.apache.tsfile.write.schema.MeasurementSchema;

/** Uses a server through a SessionPool; prints a line for each step. Arguments: port, user, password. */
public class PoolClient {
  static final List<String> NAMES = Arrays.asList("b", "i", "l", "f", "d", "t");
  static final List<TSDataType> TYPES = Arrays.asList(
      TSDataType.BOOLEAN, TSDataType.INT32, TSDataType.INT64, TSDataType.FLOAT, TSDataType.DOUBLE, TSDataType.TEXT);

  interface Write {
    void run() throws Exception;
  }

  static void step(String name, Callable<Object> run) {
    String result;
    try {
      result = String.valueOf(run.call());
    } catch (Throwable error) {
      result = error.getClass().getSimpleName() + ": " + String.valueOf(error.getMessage()).split("\n")[0];
    }
    System.out.println(name + " | " + result);
  }

  static void write(String name, Write run) {
    step(name, () -> {
      run.run();
      return "done";
    });
  }

  static List<Object> values(int number) {
    return Arrays.asList(number % 2 == 1, number, (1L << 40) + number, 0.5f, number / 4.0, "t" + number);
  }

  static String rows(SessionDataSetWrapper result) throws Exception {
    StringBuilder text = new StringBuilder();
    while (result.hasNext()) {
      text.append('[').append(result.next().toString().replace('\t', ' ')).append(']');
    }
    result.close();
    return text.toString();
  }

  /** Rows from `first` to before `end`; every second value of every second row is null. */
  @SuppressWarnings({"rawtypes", "unchecked"})
  static Tablet tablet(String device, int first, int end) throws Exception {
    List schemas = new ArrayList();
    for (int column = 0; column < NAMES.size(); column++) {
      schemas.add(new MeasurementSchema(NAMES.get(column), TYPES.get(column)));
    }
    Tablet tablet = new Tablet(device, schemas, 1000);
    tablet.initBitMaps();
    for (int row = 0; row < end - first; row++) {
      tablet.addTimestamp(row, first + row);
      for (int column = 0; column < NAMES.size(); column++) {
        Object value = values(first + row).get(column);
        tablet.addValue(NAMES.get(column), row, row % 2 == 1 && column % 2 == 1 ? null : value);
      }
    }
    try {
      Method set = Tablet.class.getMethod("setRowSize", int.class);
      set.invoke(tablet, end - first);
    } catch (NoSuchMethodException old) {
      Tablet.class.getField("rowSize").setInt(tablet, end - first);
    }
    return tablet;
  }

  public static void main(String[] arguments) throws Exception {
    SessionPool pool = new SessionPool.Builder()
        .host("127.0.0.1").port(Integer.parseInt(arguments[0])).user(arguments[1]).password(arguments[2])
        .maxSize(2).fetchSize(3).zoneId(java.time.ZoneId.of("UTC")).build();
    write("createDatabase", () -> pool.createDatabase("root.pool"));
    write("createTimeseries", () ->
        pool.createTimeseries("root.pool.e.x", TSDataType.INT32, TSEncoding.PLAIN, CompressionType.SNAPPY));
    step("checkTimeseriesExists", () -> pool.checkTimeseriesExists("root.pool.e.x"));
    write("insertRecord", () -> pool.insertRecord("root.pool.d", 1, NAMES, TYPES, values(1)));
    write("insertRecord of texts", () ->
        pool.insertRecord("root.pool.d", 2, Arrays.asList("i", "t"), Arrays.asList("2", "t2")));
    write("insertRecords", () -> pool.insertRecords(
        Arrays.asList("root.pool.d", "root.pool.n"), Arrays.asList(3L, 3L), Arrays.asList(NAMES, Arrays.asList("q")),
        Arrays.asList(TYPES, Arrays.asList(TSDataType.INT32)), Arrays.asList(values(3), Arrays.asList((Object) 3))));
    write("insertRecords of texts", () -> pool.insertRecords(
        Arrays.asList("root.pool.d", "root.pool.n"), Arrays.asList(4L, 4L),
        Arrays.asList(Arrays.asList("i"), Arrays.asList("q")), Arrays.asList(Arrays.asList("4"), Arrays.asList("4"))));
    write("insertRecordsOfOneDevice", () -> pool.insertRecordsOfOneDevice(
        "root.pool.d", Arrays.asList(6L, 5L), Arrays.asList(NAMES, NAMES), Arrays.asList(TYPES, TYPES),
        Arrays.asList(values(6), values(5))));
    write("insertStringRecordsOfOneDevice", () -> pool.insertStringRecordsOfOneDevice(
        "root.pool.d", Arrays.asList(7L), Arrays.asList(Arrays.asList("i")), Arrays.asList(Arrays.asList("7"))));
    write("insertTablet", () -> pool.insertTablet(tablet("root.pool.d", 8, 16)));
    write("insertTablets", () -> {
      Map<String, Tablet> tablets = new HashMap<>();
      tablets.put("root.pool.d", tablet("root.pool.d", 16, 17));
      tablets.put("root.pool.n", tablet("root.pool.n", 16, 17));
      pool.insertTablets(tablets);
    });
    write("insertAlignedRecord", () -> pool.insertAlignedRecord("root.pool.al", 1, NAMES, TYPES, values(1)));
    write("insertAlignedRecords", () -> pool.insertAlignedRecords(
        Arrays.asList("root.pool.al"), Arrays.asList(2L), Arrays.asList(NAMES), Arrays.asList(TYPES),
        Arrays.asList(values(2))));
    write("insertAlignedRecordsOfOneDevice", () -> pool.insertAlignedRecordsOfOneDevice(
        "root.pool.al", Arrays.asList(3L), Arrays.asList(NAMES), Arrays.asList(TYPES), Arrays.asList(values(3))));
    write("insertAlignedTablet", () -> pool.insertAlignedTablet(tablet("root.pool.al", 4, 6)));
    write("executeNonQueryStatement", () ->
        pool.executeNonQueryStatement("insert into root.pool.d(time, i) values (17, 17)"));
    step("executeQueryStatement", () ->
        rows(pool.executeQueryStatement("select b, i, l, f, d, t from root.pool.d where time < 12")));
    step("aligned", () -> rows(pool.executeQueryStatement("select b, i, l, f, d, t from root.pool.al where time > 3")));
    step("count", () -> rows(pool.executeQueryStatement("select count(i), count(t) from root.pool.d")));
    step("with a time-out", () -> rows(pool.executeQueryStatement("select q from root.pool.n", 60_000)));
    step("executeRawDataQuery", () -> rows(pool.executeRawDataQuery(Arrays.asList("root.pool.d.i"), 1, 4, 60_000)));
    step("executeLastDataQuery", () -> rows(pool.executeLastDataQuery(Arrays.asList("root.pool.d.i"))));
    step("executeLastDataQueryForOneDevice", () -> rows(
        pool.executeLastDataQueryForOneDevice("root.pool", "root.pool.al", Arrays.asList("i", "t"), true)));
    step("executeAggregationQuery", () -> rows(
        pool.executeAggregationQuery(Arrays.asList("root.pool.d.i"), Arrays.asList(TAggregationType.COUNT))));
    step("two results at once", () -> {
      SessionDataSetWrapper first = pool.executeQueryStatement("select i from root.pool.d");
      SessionDataSetWrapper second = pool.executeQueryStatement("select i from root.pool.al");
      first.next();
      return rows(second) + rows(first).length();
    });
    step("syntax", () -> pool.executeQueryStatement("selec"));
    write("a value of another type", () -> pool.insertRecord(
        "root.pool.d", 20, Arrays.asList("i"), Arrays.asList(TSDataType.TEXT), Collections.singletonList("x")));
    write("one of two records", () -> pool.insertRecords(
        Arrays.asList("root.pool.d", "root.pool.n"), Arrays.asList(20L, 20L),
        Arrays.asList(Arrays.asList("i"), Arrays.asList("q")),
        Arrays.asList(Arrays.asList(TSDataType.TEXT), Arrays.asList(TSDataType.INT32)),
        Arrays.asList(Collections.singletonList("x"), Collections.singletonList(20))));
    step("the other one", () -> rows(pool.executeQueryStatement("select q from root.pool.n where time = 20")));
    write("deleteData", () -> pool.deleteData("root.pool.d.i", 15));
    step("what is left", () -> rows(pool.executeQueryStatement("select i from root.pool.d")));
    write("deleteTimeseries", () -> pool.deleteTimeseries("root.pool.e.x"));
    write("deleteDatabase", () -> pool.deleteDatabase("root.pool"));
    pool.close();
    System.exit(0);
  }
}
