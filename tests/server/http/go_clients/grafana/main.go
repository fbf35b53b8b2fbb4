// Asks Saros as Grafana's data source for IoTDB does, and makes a data frame of the answer.
//
//	grafana URL USER PASSWORD PATH < body.json    prints the frame as JSON: names, types and values of its fields
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/data"
)

// answer is what the data source decodes; the fields of version 2 have other names.
type answer struct {
	Expressions []string `json:"expressions"`
	Timestamps  []int64  `json:"timestamps"`
	Values      [][]any  `json:"values"`
	Code        int32    `json:"code"`
	Message     string   `json:"message"`
}

func main() {
	frame, err := ask(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, err := frame.MarshalArrow(); err != nil { // how a plugin hands it to Grafana
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	text, _ := json.Marshal(described(frame))
	fmt.Println(string(text))
}

func ask(url, user, password, path string) (*data.Frame, error) {
	request, err := http.NewRequest(http.MethodPost, url+path, os.Stdin)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(user, password)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var found answer
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, err
	}
	if found.Code > 0 {
		return nil, errors.New(found.Message)
	}
	return frameOf(found)
}

func frameOf(found answer) (*data.Frame, error) {
	times := make([]time.Time, len(found.Timestamps))
	for i, ms := range found.Timestamps {
		times[i] = time.UnixMilli(ms).UTC()
	}
	frame := data.NewFrame("response", data.NewField("Time", nil, times))
	for i, name := range found.Expressions {
		values, err := column(found.Values[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		frame.Fields = append(frame.Fields, data.NewField(name, nil, values))
	}
	_, err := frame.RowLen()
	return frame, err
}

// column makes a typed column: the first value that is not null says of which type.
func column(values []any) (any, error) {
	var first any
	for _, value := range values {
		if first = value; first != nil {
			break
		}
	}
	switch first.(type) {
	case string:
		return typed[string](values, nil)
	case bool:
		return typed[bool](values, false)
	default:
		return typed[float64](values, math.NaN())
	}
}

func typed[T any](values []any, null any) ([]T, error) {
	made := make([]T, len(values))
	for i, value := range values {
		if value == nil {
			value = null
		}
		found, ok := value.(T)
		if !ok {
			return nil, fmt.Errorf("value %d is %v", i, value)
		}
		made[i] = found
	}
	return made, nil
}

type field struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Values []string `json:"values"`
}

func described(frame *data.Frame) []field {
	var fields []field
	for _, each := range frame.Fields {
		values := make([]string, each.Len())
		for i := range values {
			values[i] = fmt.Sprint(each.At(i))
		}
		fields = append(fields, field{each.Name, each.Type().ItemTypeString(), values})
	}
	return fields
}
