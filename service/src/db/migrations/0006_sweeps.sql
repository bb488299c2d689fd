-- Up Migration

-- Where an outflow leaves from, when that is not the reserve: a deposit address of ours and the index of its key.
-- The units of a sweep of native coin are all that the address held; the fee comes out of them.
ALTER TABLE outflows
  ADD COLUMN from_address text,
  ADD COLUMN from_index integer,
  ADD CONSTRAINT outflows_from CHECK ((from_address IS NULL) = (from_index IS NULL)),
  ADD CONSTRAINT outflows_from_swept CHECK (from_address IS NULL OR kind = 'sweep');

-- One live transaction out of a deposit address, and one that brings it gas: nonces follow one another, and what was
-- sent for one purpose is not taken for another.
CREATE UNIQUE INDEX outflows_one_sweep ON outflows (bucket, chain, from_address)
  WHERE from_address IS NOT NULL AND state IN ('planned', 'signed', 'broadcast');
CREATE UNIQUE INDEX outflows_one_gas ON outflows (bucket, chain, address)
  WHERE kind = 'sweep' AND from_address IS NULL AND state IN ('planned', 'signed', 'broadcast');

-- Deposit addresses of account chains at which something was booked. What they hold is asked of the chain.
CREATE TABLE unswept_addresses (
  chain text NOT NULL,
  address text NOT NULL,
  key_index integer NOT NULL,
  -- When something was booked there last: the longer ago, the less often it is looked at.
  booked_at_ms bigint NOT NULL,
  due_at_ms bigint NOT NULL,
  -- The live outflow that sweeps this address or brings it gas, and how many there were so far.
  sweeping text,
  sweep_count integer NOT NULL DEFAULT 0,
  PRIMARY KEY (chain, address)
);
CREATE INDEX unswept_addresses_due ON unswept_addresses (chain, due_at_ms) WHERE sweeping IS NULL;
CREATE INDEX unswept_addresses_live ON unswept_addresses (chain, sweeping) WHERE sweeping IS NOT NULL;

-- What was booked before there were sweeps.
INSERT INTO unswept_addresses (chain, address, key_index, booked_at_ms, due_at_ms)
SELECT received.chain, a.address, a.key_index, max(received.seen_at_ms), 0
FROM (
  SELECT d.chain, o.deposit_address AS address, d.seen_at_ms
  FROM deposits d JOIN orders o USING (bucket, order_id) WHERE d.state = 'confirmed'
  UNION ALL
  SELECT chain, address, seen_at_ms FROM house_deposits WHERE state = 'confirmed' AND kind = 'stray'
) AS received JOIN addresses a ON a.address = received.address AND a.family = 'evm' AND a.purpose = 'deposit'
WHERE received.chain IN ('ETH', 'BNB')
GROUP BY received.chain, a.address, a.key_index;

-- Down Migration

DROP TABLE unswept_addresses;
DROP INDEX outflows_one_sweep, outflows_one_gas;
ALTER TABLE outflows DROP CONSTRAINT outflows_from, DROP CONSTRAINT outflows_from_swept,
  DROP COLUMN from_address, DROP COLUMN from_index;
