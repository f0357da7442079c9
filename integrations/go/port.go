package kafkalite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
)

// port is the HTTP port of a broker.
type port struct {
	address string
	token   string
}

func newPort(address string) port {
	parsed, err := url.Parse(address)
	if err != nil {
		return port{address: address} // the first request says what is wrong
	}
	return port{address: parsed.Scheme + "://" + parsed.Host, token: parsed.Query().Get("token")}
}

// ask returns false if the answer has one of the statuses that are no error here.
func (p port) ask(method, path string, body Rule, answer any, allowed ...int) (bool, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return false, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, p.address+path, content)
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, fmt.Errorf("the broker's HTTP port does not answer: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	if slices.Contains(allowed, response.StatusCode) {
		return false, nil
	}
	if response.StatusCode/100 != 2 {
		var refusal struct {
			Error  struct{ Message string }
			Reason string
		}
		_ = json.Unmarshal(text, &refusal)
		return false, fmt.Errorf("%s: %s%s", path, refusal.Error.Message, refusal.Reason)
	}
	if answer == nil {
		return true, nil
	}
	return true, json.Unmarshal(text, answer)
}
