package terms

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// The folders of testdata say in comments what is reported where.
func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), Analyzer, "words")
}
