package observe

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// panels are the expressions of the dashboard, with a value for Grafana's variable.
func panels(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID                 int
			Title, Description string
			Targets            []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	all, ids := map[string]string{}, map[int]bool{}
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] || panel.Title == "" || panel.Description == "" {
			t.Errorf("panel %d %q needs a number of its own, a title and a description", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			all["panel "+panel.Title+" "+target.RefID] = strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
		}
	}
	if len(all) == 0 {
		t.Error("the dashboard shows nothing")
	}
	return all
}
