-- Up Migration

-- A mail that is due, or was. It is written in the transaction that makes it true, and exists once: the same event, kind
-- and address again is the same row.
CREATE TABLE mails (
  -- Of the order it is about; 0 for mails about an account.
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 99),
  event_key text NOT NULL CHECK (length(event_key) BETWEEN 1 AND 200),
  kind text NOT NULL CHECK (kind ~ '^[a-z_]{1,40}$'),
  to_address text NOT NULL CHECK (length(to_address) BETWEEN 3 AND 254),
  account_id text,
  -- What the mail says. Emptied when the mail is over: it may hold a link that signs somebody in.
  data jsonb NOT NULL,
  -- The same on every attempt; what stands before the @.
  message_id text NOT NULL CHECK (message_id ~ '^[A-Za-z0-9_-]{20,64}$'),
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'refused', 'given_up')),
  queued_at_ms bigint NOT NULL,
  due_at_ms bigint NOT NULL,
  -- Counted before the mail server is called: an attempt that nobody lived to note is one too.
  attempts integer NOT NULL DEFAULT 0,
  claimed_until_wall_ms bigint NOT NULL DEFAULT 0,
  claim_fence integer NOT NULL DEFAULT 0,
  last_answer text,
  over_at_ms bigint,
  PRIMARY KEY (bucket, event_key, kind, to_address),
  CHECK ((state = 'waiting') = (over_at_ms IS NULL))
);
CREATE INDEX mails_due ON mails (due_at_ms) WHERE state = 'waiting';
CREATE INDEX mails_unsent ON mails (state) WHERE state <> 'sent';
CREATE INDEX mails_over ON mails (over_at_ms) WHERE state <> 'waiting';

-- Down Migration

DROP TABLE mails;
