-- Up Migration

-- Which of two figures was begun later, told by the one clock that watchers and engines share. A watcher draws a number before it looks
-- at anything. An engine whose settlement had ended when it read the last number drawn knows: a figure with a higher one has it in it.
CREATE SEQUENCE reserve_figures;
ALTER TABLE reserves ADD COLUMN figure bigint NOT NULL DEFAULT 0;
ALTER SEQUENCE reserve_figures OWNED BY reserves.figure;
GRANT USAGE, SELECT ON SEQUENCE reserve_figures TO cambist_service;

-- Down Migration

ALTER TABLE reserves DROP COLUMN figure;
