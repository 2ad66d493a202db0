-- The ledger. Times are whole microseconds since the Unix epoch.

CREATE TABLE meta (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    ledger_id   TEXT    NOT NULL,
    created_us  INTEGER NOT NULL
);

-- What is counted for ever, however many rows have gone since.
CREATE TABLE counter (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    accepted    INTEGER NOT NULL,
    pruned      INTEGER NOT NULL,
    discarded   INTEGER NOT NULL,
    cells_pruned_to BLOB NOT NULL              -- where the next look for old cells begins
);
INSERT INTO counter VALUES (1, 0, 0, 0, x'');

CREATE TABLE lane (
    id          INTEGER PRIMARY KEY,
    channel     TEXT    NOT NULL,
    account     TEXT    NOT NULL,
    endpoint    TEXT    NOT NULL,
    keyed       INTEGER NOT NULL DEFAULT 0,  -- its head lists properties
    open        INTEGER NOT NULL DEFAULT 0,  -- open mutations
    health      TEXT,
    UNIQUE (channel, account, endpoint)
);

-- An id is the count of accepted mutations up to it: an order, never used twice, pruned or not.
CREATE TABLE mutation (
    id              INTEGER PRIMARY KEY,
    correlation_id  TEXT    NOT NULL,          -- unique: looked up in the transaction that adds it
    name            INTEGER NOT NULL,          -- 8 bytes of its digest: an index a third of the size
    lane_id         INTEGER NOT NULL,
    kind            INTEGER NOT NULL,          -- 0 rate, 1 availability, 2 restriction
    stock           BLOB    NOT NULL,          -- channel, account, property, room and date, digested
    property_id     TEXT    NOT NULL,
    room            TEXT    NOT NULL,
    plan            TEXT,
    stay_date       TEXT    NOT NULL,
    fields          TEXT    NOT NULL,          -- the value, as JSON
    revision        INTEGER NOT NULL,
    state           INTEGER NOT NULL,          -- 0 queued, 1 in_flight, 2 deferred, then the final ones
    gate            INTEGER NOT NULL,          -- 0 none, 1 ready, 2 waits for at_us, 3 waits for another
    due_us          INTEGER,                   -- as it was deferred
    at_us           INTEGER,                   -- that, or until when its cell rests
    priority        INTEGER NOT NULL,
    place           INTEGER NOT NULL,          -- its place in the queue, inherited from what it replaced
    keyed           INTEGER NOT NULL,          -- the lane's flag, so that an index can be partial on it
    recipe          INTEGER NOT NULL,          -- of its key: 0 revision, 1 content
    idempotency_key BLOB    NOT NULL,          -- its hex digits as bytes
    content_hash    BLOB    NOT NULL,          -- 16 bytes of it
    sequence        INTEGER,
    batch           TEXT,
    time_zone       TEXT,
    expires_at_us   INTEGER,                   -- as the producer gave it
    expires_us      INTEGER,                   -- that, or the end of the stay date
    accepted_us     INTEGER NOT NULL,
    changed_us      INTEGER NOT NULL,
    sent_us         INTEGER,
    attempts        INTEGER NOT NULL DEFAULT 0,
    requests        INTEGER NOT NULL DEFAULT 0,
    throttled       INTEGER NOT NULL DEFAULT 0,
    last_status     INTEGER,
    last_answer     TEXT,
    reason          TEXT,
    confirmation_id TEXT,
    superseded_by   TEXT,
    replaced        TEXT,
    behind          TEXT
);
CREATE INDEX mutation_name     ON mutation (name);
CREATE INDEX mutation_ready    ON mutation (lane_id, priority, place) WHERE gate = 1;
CREATE INDEX mutation_keyed    ON mutation (lane_id, property_id, priority, place) WHERE gate = 1 AND keyed = 1;
CREATE INDEX mutation_parked   ON mutation (lane_id, at_us) WHERE gate = 2;
CREATE INDEX mutation_stock    ON mutation (stock, kind, plan) WHERE state < 3;
CREATE INDEX mutation_sent     ON mutation (lane_id) WHERE state = 1;
CREATE INDEX mutation_batch    ON mutation (batch) WHERE batch IS NOT NULL;
CREATE INDEX mutation_finished ON mutation (state, changed_us) WHERE state > 2;

-- Requests that were answered or given up; the intent to send stands on the mutation.
CREATE TABLE attempt (
    id          INTEGER PRIMARY KEY,
    mutation_id INTEGER NOT NULL,
    lane_id     INTEGER NOT NULL,
    property_id TEXT    NOT NULL,
    sent_us     INTEGER NOT NULL,
    answered_us INTEGER NOT NULL,              -- or when it was given up
    lost        INTEGER NOT NULL DEFAULT 0,    -- the process died before the answer
    status      INTEGER,
    answer      TEXT,
    retry_after TEXT,
    counted     INTEGER NOT NULL
);
CREATE INDEX attempt_mutation ON attempt (mutation_id);
CREATE INDEX attempt_sent     ON attempt (sent_us);
CREATE INDEX attempt_lost     ON attempt (sent_us) WHERE lost = 1;

CREATE TABLE tally (
    lane_id     INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    n           INTEGER NOT NULL,
    PRIMARY KEY (lane_id, priority, state)
) WITHOUT ROWID;

CREATE TABLE hold (
    scope       TEXT    NOT NULL,              -- as JSON
    cause       TEXT    NOT NULL,
    since_us    INTEGER NOT NULL,
    until_us    INTEGER,
    detail      TEXT    NOT NULL,
    PRIMARY KEY (scope, cause)
) WITHOUT ROWID;

-- What is known of a cell beyond its open mutations, kept until its stay date + retention.
CREATE TABLE cell (
    stock       BLOB    NOT NULL,
    kind        INTEGER NOT NULL,
    plan        TEXT    NOT NULL,              -- empty: every plan
    revision    INTEGER NOT NULL,
    sequence    INTEGER,
    latest      INTEGER NOT NULL,              -- the newest mutation accepted
    gone        INTEGER,                       -- the newest taken off the record that was not cancelled
    inventory   INTEGER,                       -- of the newest, for an availability
    rest_us     INTEGER,                       -- no value goes before this
    rest_of     INTEGER,                       -- but this one's, which may still arrive
    PRIMARY KEY (stock, kind, plan)
) WITHOUT ROWID;
