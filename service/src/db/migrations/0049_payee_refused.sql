-- Up Migration

-- Since when its node has said at every look that whom an outflow is to pay cannot be paid; NULL: it says otherwise, or nothing.
ALTER TABLE outflows ADD COLUMN payee_refused_since_ms bigint;

-- Down Migration

ALTER TABLE outflows DROP COLUMN payee_refused_since_ms;
