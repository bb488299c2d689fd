-- Up Migration

-- No question went by it, and with it each use of a session that is noted wrote an entry into every index of the table.
DROP INDEX sessions_least_used;

-- Down Migration

CREATE INDEX sessions_least_used ON sessions (last_used_at_ms);
