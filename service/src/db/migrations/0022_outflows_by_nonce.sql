-- Up Migration

-- Which of those that are over, among all there ever were, has a nonce of the reserve.
CREATE INDEX outflows_by_nonce ON outflows (chain, nonce)
  WHERE nonce IS NOT NULL AND from_address IS NULL AND mined_hash IS NOT NULL;

-- Down Migration

DROP INDEX outflows_by_nonce;
