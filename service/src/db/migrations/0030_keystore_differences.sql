-- Up Migration

-- What an engine has found: a key of which its signer derives another address than is stored, one for each address family. While there
-- is one, no order is given an address. The engine that has found it renews it as long as it is so; once it is gone, the next engine
-- whose signer is right takes it away.
CREATE TABLE keystore_differences (
  holder text NOT NULL,
  family text NOT NULL,
  purpose text NOT NULL,
  key_index integer NOT NULL,
  stored text NOT NULL,
  derived text NOT NULL,
  noted_wall_ms bigint NOT NULL,
  PRIMARY KEY (holder, family)
);

-- Down Migration

DROP TABLE keystore_differences;
