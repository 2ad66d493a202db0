-- Where the last dispatcher's clock stood against the machine's uptime, so that a step of the wall
-- clock between two runs is seen.

CREATE TABLE frame (
    boot_id     TEXT    NOT NULL,
    offset_us   INTEGER NOT NULL
);
CREATE INDEX cell_resting ON cell (rest_us) WHERE rest_us IS NOT NULL;
