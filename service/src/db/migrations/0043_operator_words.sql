-- Up Migration

-- What an operator has said is done with: unclaimed money that is closed, and what is missing of an order and written off. Of listed
-- assets the journal has an entry of each. Of the words about one thing each further one turns the one before round, or adds to it.
CREATE TABLE operator_words (
  act text NOT NULL CHECK (act IN ('closed_unclaimed', 'written_off')),
  -- Whose books have it: an order, or `house`.
  owner text NOT NULL,
  -- The key of a deposit, or the order.
  about text NOT NULL,
  number integer NOT NULL CHECK (number > 0),
  asset text NOT NULL,
  -- Negative: the other way round.
  units numeric(78,0) NOT NULL,
  because text NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY (act, owner, about, number)
);
REVOKE UPDATE, DELETE ON operator_words FROM cambist_service;

-- Down Migration

DROP TABLE operator_words;
