import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.tsfile.file.metadata.IDeviceID;
import org.apache.tsfile.file.metadata.TimeseriesMetadata;
import org.apache.tsfile.read.TsFileReader;
import org.apache.tsfile.read.TsFileSequenceReader;
import org.apache.tsfile.read.common.Field;
import org.apache.tsfile.read.common.Path;
import org.apache.tsfile.read.common.RowRecord;
import org.apache.tsfile.read.expression.QueryExpression;
import org.apache.tsfile.read.query.dataset.QueryDataSet;

/** Apache's reader in Java: `TsFileDump FILE ...` prints each series of the files, as a line of JSON. */
public class TsFileDump {
  public static void main(String[] files) throws Exception {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (int number = 0; number < files.length; number++) {
      try (TsFileSequenceReader metadata = new TsFileSequenceReader(files[number]);
          TsFileReader reader = new TsFileReader(metadata)) {
        for (Map.Entry<IDeviceID, List<TimeseriesMetadata>> device :
            metadata.getAllTimeseriesMetadata(false).entrySet()) {
          for (TimeseriesMetadata series : device.getValue()) {
            String name = series.getMeasurementId();
            if (!name.isEmpty()) {
              List<String> rows = rows(reader, new Path(device.getKey(), name, false));
              out.printf(
                  "[%d, %s, %s, [%s]]\n", number, text(device.getKey().toString()), text(name), String.join(", ", rows));
            }
          }
        }
      }
    }
    out.flush();
  }

  private static List<String> rows(TsFileReader reader, Path path) throws Exception {
    QueryDataSet found = reader.query(QueryExpression.create(new ArrayList<>(List.of(path)), null));
    List<String> rows = new ArrayList<>();
    while (found.hasNext()) {
      RowRecord row = found.next();
      Field field = row.getFields().get(0);
      if (field != null && field.getDataType() != null) {
        rows.add("[" + row.getTimestamp() + ", " + value(field) + "]");
      }
    }
    return rows;
  }

  private static String value(Field field) {
    switch (field.getDataType()) {
      case TEXT:
      case STRING:
        return text(field.getBinaryV().getStringValue(StandardCharsets.UTF_8));
      case BLOB:
        List<String> bytes = new ArrayList<>();
        for (byte each : field.getBinaryV().getValues()) {
          bytes.add(Integer.toString(each & 0xff));
        }
        return bytes.toString();
      case DATE:
        LocalDate date = field.getDateV();
        return Integer.toString(date.getYear() * 10_000 + date.getMonthValue() * 100 + date.getDayOfMonth());
      case FLOAT:
        return Double.toString(field.getFloatV());
      case TIMESTAMP:
        return Long.toString(field.getLongV());
      default:
        return field.getStringValue();
    }
  }

  private static String text(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char each : text.toCharArray()) {
      if (each < ' ' || each == '"' || each == '\\') {
        out.append(String.format("\\u%04x", (int) each));
      } else {
        out.append(each);
      }
    }
    return out.append('"').toString();
  }
}
