// Command conformance says what Kubernetes says about device selectors.
//
//	conformance FILE...    rewrites vector files in place with the verdicts of Kubernetes
//	conformance -stream    reads {"device": {...}} and {"expr": "..."} lines, writes one verdict line per expression
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

// The gates as in the legend of the vectors.
var features = cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: false}

// What the cost estimator says of constructs it cannot bound.
const unbounded = math.MaxInt64

// evaluationLimit ends what the cost limit at run time does not; a scheduler has a limit of its own.
const evaluationLimit = 30 * time.Second

type device struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

type verdict struct {
	want   string
	cost   uint64
	detail string
}

// judge compiles and prices a selector as an API server does, then evaluates it as a scheduler does. The device is read
// anew each time because add and sub change large quantities in place.
func judge(expr string, raw json.RawMessage) verdict {
	var on device
	if err := json.Unmarshal(raw, &on); err != nil {
		return verdict{want: "error", detail: err.Error()}
	}
	if len(expr) > resourceapi.CELSelectorExpressionMaxLength {
		return verdict{want: "compile", detail: "too long"}
	}
	// The environment of stored expressions knows everything; the one of admission leaves out what a gate turned off.
	compiled := cel.GetCompiler(features).CompileCELExpression(expr, cel.Options{})
	if compiled.Error != nil {
		return verdict{want: "compile", detail: compiled.Error.Error()}
	}
	if compiled.MaxCost > resourceapi.CELSelectorExpressionMaxCost {
		return verdict{want: "toocostly", cost: compiled.MaxCost}
	}
	ctx, cancel := context.WithTimeout(context.Background(), evaluationLimit)
	defer cancel()
	matches, _, err := compiled.DeviceMatches(ctx, cel.Device{
		Driver:                   on.Driver,
		AllowMultipleAllocations: on.AllowMultipleAllocations,
		Attributes:               on.Attributes,
		Capacity:                 on.Capacity,
	})
	if err != nil {
		return verdict{want: "error", cost: compiled.MaxCost, detail: err.Error()}
	}
	return verdict{want: fmt.Sprint(matches), cost: compiled.MaxCost}
}

// vectors is a file of cases. Verdicts are replaced; devices and the legend stay as written.
type vectors struct {
	Kubernetes json.RawMessage            `json:"kubernetes"`
	Legend     json.RawMessage            `json:"legend"`
	Device     json.RawMessage            `json:"device,omitempty"`
	Devices    json.RawMessage            `json:"devices,omitempty"`
	Cases      []vector                   `json:"cases"`
	named      map[string]json.RawMessage `json:"-"`
}

type vector struct {
	Expr   string  `json:"expr"`
	Device string  `json:"device,omitempty"`
	Want   string  `json:"want"`
	Cost   *uint64 `json:"cost,omitempty"`
}

func (v *vectors) deviceOf(c vector, fallback json.RawMessage) (json.RawMessage, error) {
	if c.Device == "" && v.Devices == nil {
		return fallback, nil
	}
	if raw, known := v.named[c.Device]; known {
		return raw, nil
	}
	return nil, fmt.Errorf("%q: no device is called %q", c.Expr, c.Device)
}

// rewrite judges every case of a file. It returns the device of the file, which files without one use.
func rewrite(path string, fallback json.RawMessage) (json.RawMessage, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fallback, err
	}
	var file vectors
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&file); err != nil {
		return fallback, fmt.Errorf("%s: %w", path, err)
	}
	if file.Device != nil {
		fallback = file.Device
	}
	if file.Devices != nil {
		if err := json.Unmarshal(file.Devices, &file.named); err != nil {
			return fallback, fmt.Errorf("%s: devices: %w", path, err)
		}
	}
	priced := bytes.Contains(file.Legend, []byte(`"cost"`))
	changed := 0
	for i := range file.Cases {
		c := &file.Cases[i]
		on, err := file.deviceOf(*c, fallback)
		if err != nil {
			return fallback, fmt.Errorf("%s: %w", path, err)
		}
		found := judge(c.Expr, on)
		before := *c
		c.Want, c.Cost = found.want, nil
		if priced && found.want != "compile" && found.cost < unbounded/8 {
			c.Cost = ptr.To(found.cost)
		}
		if before.Want != c.Want || !ptr.Equal(before.Cost, c.Cost) {
			changed++
			fmt.Printf("%s: %s: %q, was %q %s\n", path, c.Expr, c.Want, before.Want, found.detail)
		}
	}
	fmt.Printf("%s: %d cases, %d changed\n", path, len(file.Cases), changed)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(&file); err != nil {
		return fallback, err
	}
	written := out.Bytes()
	if !bytes.HasSuffix(raw, []byte("\n")) {
		written = bytes.TrimSuffix(written, []byte("\n"))
	}
	if bytes.Equal(written, raw) {
		return fallback, nil
	}
	return fallback, os.WriteFile(path, written, 0o644)
}

// stream judges lines: {"device": ...} sets the device for the {"expr": ...} lines after it.
func stream(in io.Reader, out io.Writer) error {
	reader, writer := bufio.NewReaderSize(in, 1<<20), bufio.NewWriter(out)
	defer writer.Flush()
	decoder, encoder := json.NewDecoder(reader), json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	on := json.RawMessage("{}")
	for {
		var line struct {
			Device json.RawMessage `json:"device"`
			Expr   *string         `json:"expr"`
		}
		if err := decoder.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if line.Device != nil {
			on = line.Device
		}
		if line.Expr != nil {
			found := judge(*line.Expr, on)
			answer := map[string]any{"want": found.want, "detail": found.detail}
			if found.want != "compile" {
				answer["cost"] = found.cost
			}
			if err := encoder.Encode(answer); err != nil {
				return err
			}
		}
	}
}

func main() {
	streaming := flag.Bool("stream", false, "judge lines of standard input")
	flag.Parse()
	var err error
	if *streaming {
		err = stream(os.Stdin, os.Stdout)
	} else {
		fallback := json.RawMessage("{}")
		for _, path := range flag.Args() {
			if fallback, err = rewrite(path, fallback); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
