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
CREATE TABLE IF NOT EXISTS outbox (
  request_id text   PRIMARY KEY,
  sku        text   NOT NULL,
  qty        bigint NOT NULL,
  sent       bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS shipments (
  sku        text   NOT NULL,
  number     bigint NOT NULL,
  request_id text   NOT NULL,
  qty        bigint NOT NULL,
  PRIMARY KEY (sku, number)
);
