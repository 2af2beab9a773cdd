CREATE TABLE transaction (id text PRIMARY KEY, block_number numeric, transaction_hash bytea, nullifiers bytea[],
  verification_hash bytea);
CREATE SCHEMA squid_processor;
CREATE TABLE squid_processor.status (id int PRIMARY KEY, height int, hash text, nonce int);
CREATE TABLE squid_processor.hot_block (height int PRIMARY KEY, hash text);
INSERT INTO squid_processor.status VALUES (0, 0, '0x', 0);
