// Uses a client that openapi-generator made of the service's description.
//
//	program HOST:PORT TOKEN    writes a tablet, reads it in two ways, and prints what it has read
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	saros "example.org/saros"
)

func main() {
	configuration := saros.NewConfiguration()
	configuration.Host, configuration.Scheme = os.Args[1], "http"
	client := saros.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), saros.ContextAccessToken, os.Args[2])

	values := [][]any{{1.5, nil}, {"a", "b"}}
	tablet := *saros.NewPostRestV2InserttabletRequest(
		"root.g.d", false, []int64{1, 2}, []string{"x", "t"}, []string{"DOUBLE", "TEXT"}, values)
	written, _, err := client.IoTDBRESTAPI.PostRestV2Inserttablet(ctx).PostRestV2InserttabletRequest(tablet).Execute()
	check(err)
	fmt.Println(written.GetCode(), written.GetMessage())

	query := *saros.NewPostRestV2QueryRequest("select x, t from root.g.d")
	rows, _, err := client.IoTDBRESTAPI.PostRestV2Query(ctx).PostRestV2QueryRequest(query).Execute()
	check(err)
	fmt.Println(rows.GetExpressions(), rows.GetDataTypes(), rows.GetTimestamps(), rows.GetValues())

	file, _, err := client.QueryAPI.GetQueryCsv(ctx).Sql("select t from root.g.d").Execute()
	check(err)
	_, err = file.Seek(0, io.SeekStart)
	check(err)
	text, err := io.ReadAll(file)
	check(err)
	check(os.Remove(file.Name()))
	fmt.Print(string(text))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
