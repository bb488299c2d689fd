-- Up Migration

-- Every act that matters to the safety of an account. Each row holds the hash of the one before it in its chain and its
-- own over everything it says, so that whoever changes the past has to change all that came after. A chain is an account,
-- so that accounts do not wait for one another; acts of nobody in particular are spread over `house_0` to `house_f`.
-- `cambist audit verify` checks it. Times in these tables are the wall clock's.
CREATE TABLE audit_log (
  chain         text    NOT NULL,
  sequence      integer NOT NULL CHECK (sequence > 0),
  at_ms         bigint  NOT NULL,
  act           text    NOT NULL,
  actor         text    NOT NULL,
  -- What it was done to: a key, a session, an endpoint.
  subject       text,
  -- Where the request came from.
  address       text,
  -- JSON, as the text that was hashed.
  detail        text    NOT NULL,
  previous_hash bytea   NOT NULL,
  hash          bytea   NOT NULL,
  PRIMARY KEY (chain, sequence)
);

-- Where each chain ends: whoever takes rows from its end has to change this as well.
CREATE TABLE audit_heads (
  chain    text    PRIMARY KEY,
  sequence integer NOT NULL,
  hash     bytea   NOT NULL
);

REVOKE UPDATE, DELETE ON audit_log FROM cambist_service;
REVOKE DELETE ON audit_heads FROM cambist_service;

-- A link that signs in whoever holds it in the browser that asked for it, once. Of tokens only hashes are kept: who reads
-- this table can sign in nowhere.
CREATE TABLE sign_in_links (
  link_id       text   PRIMARY KEY,
  token_hash    bytea  NOT NULL UNIQUE,
  browser_hash  bytea  NOT NULL,
  email         text   NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  used_at_ms    bigint
);
CREATE INDEX sign_in_links_oldest ON sign_in_links (expires_at_ms);

-- A browser that is signed in; the row goes when the session ends.
CREATE TABLE sessions (
  session_id      text   PRIMARY KEY,
  token_hash      bytea  NOT NULL UNIQUE,
  account_id      text   NOT NULL REFERENCES accounts,
  created_at_ms   bigint NOT NULL,
  -- Kept to the minute.
  last_used_at_ms bigint NOT NULL,
  -- However much it is used.
  ends_at_ms      bigint NOT NULL,
  address         text   NOT NULL,
  user_agent      text
);
CREATE INDEX sessions_by_account ON sessions (account_id);
CREATE INDEX sessions_least_used ON sessions (last_used_at_ms);

-- How often something was asked in a stretch of time, over all processes.
CREATE TABLE ask_counts (
  asked    text    NOT NULL,
  from_ms  bigint  NOT NULL,
  count    integer NOT NULL,
  PRIMARY KEY (asked, from_ms)
);
CREATE INDEX ask_counts_oldest ON ask_counts (from_ms);

-- Another address for an account: it holds when both have agreed. One at a time.
CREATE TABLE email_changes (
  account_id          text   PRIMARY KEY REFERENCES accounts,
  change_id           text   NOT NULL UNIQUE,
  old_email           text   NOT NULL,
  new_email           text   NOT NULL,
  old_token_hash      bytea  NOT NULL UNIQUE,
  new_token_hash      bytea  NOT NULL UNIQUE,
  old_agreed_at_ms    bigint,
  new_agreed_at_ms    bigint,
  created_at_ms       bigint NOT NULL,
  expires_at_ms       bigint NOT NULL
);

-- Down Migration

DROP TABLE email_changes, ask_counts, sessions, sign_in_links, audit_heads, audit_log;
