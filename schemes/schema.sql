CREATE TABLE IF NOT EXISTS goods (
  sku     text   PRIMARY KEY,
  stock   bigint NOT NULL,
  version bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS orders (
  request_id text   PRIMARY KEY,
  sku        text   NOT NULL,
  buyer      text   NOT NULL,
  qty        bigint NOT NULL
);
