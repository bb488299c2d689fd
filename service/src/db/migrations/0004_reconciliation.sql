-- Up Migration

ALTER TABLE reconciliations
  ADD COLUMN chain text NOT NULL,
  -- The block that both sides were read at.
  ADD COLUMN height bigint NOT NULL,
  -- Part of ledger_units: mined and not booked yet. Negative when more is leaving than arriving.
  ADD COLUMN in_flight numeric(78,0) NOT NULL,
  -- Comparisons in a row that found a difference; enough of them stop the outflows of the chain.
  ADD COLUMN differing_count integer NOT NULL CHECK (differing_count >= 0),
  -- When the next comparison is due (wall clock): one that takes long is made less often.
  ADD COLUMN due_wall_ms bigint NOT NULL,
  ADD CONSTRAINT reconciliations_since CHECK ((difference = 0) = (differs_since_ms IS NULL)),
  ADD CONSTRAINT reconciliations_counted CHECK ((difference = 0) = (differing_count = 0)),
  ADD CONSTRAINT reconciliations_add_up CHECK (difference = chain_units - ledger_units);

-- So that readiness can say whether the schema is the one that the code was written for.
GRANT SELECT ON schema_migrations TO cambist_service;

-- Down Migration

REVOKE SELECT ON schema_migrations FROM cambist_service;
DELETE FROM reconciliations;
ALTER TABLE reconciliations DROP CONSTRAINT reconciliations_since, DROP CONSTRAINT reconciliations_counted,
  DROP CONSTRAINT reconciliations_add_up, DROP COLUMN chain, DROP COLUMN height, DROP COLUMN in_flight,
  DROP COLUMN differing_count, DROP COLUMN due_wall_ms;
