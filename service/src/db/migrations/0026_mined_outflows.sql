-- Up Migration

-- Whether an outflow was booked above a block; of those that failed some were mined as well.
CREATE INDEX outflows_mined ON outflows (chain, mined_height) WHERE mined_height IS NOT NULL;
DROP INDEX outflows_final;

-- Down Migration

CREATE INDEX outflows_final ON outflows (chain, mined_height) WHERE state = 'confirmed';
DROP INDEX outflows_mined;
