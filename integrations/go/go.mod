module github.com/kafkalite/kafkalite/integrations/go

go 1.22
